"""What makes logs, measures and writes pages: no tests, but what some tests use."""

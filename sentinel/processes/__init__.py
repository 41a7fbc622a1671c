"""The processes behind the logs: which one writes a log, and how it ended."""

"""One run: its log as far as it was read, what the log tells of it, and how the run stands."""

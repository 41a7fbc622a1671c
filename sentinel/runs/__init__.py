"""One run: its log, what the log says about the run, and the state of the run."""

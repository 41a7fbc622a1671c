"""Silent errors in small trainings, told with probes and without: `python -m tests.tools.silent`."""

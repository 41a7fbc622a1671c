"""Silent errors in small trainings, told with probes and without: `python -m studies.silent`."""

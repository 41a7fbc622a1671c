"""One set of probes a file; each docstring is the page of its set."""

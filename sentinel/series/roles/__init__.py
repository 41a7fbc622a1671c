"""What each series of a run is for, and by which of them a reader judges the run."""

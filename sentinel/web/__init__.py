"""The live page: all runs of a state directory, and each run as its report, while both change."""

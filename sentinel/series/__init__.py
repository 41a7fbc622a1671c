"""Turns logged points into the windows that detectors judge: names, attempts, bounded history."""

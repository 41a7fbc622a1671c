"""Fleets of small trainings in numpy, healthy and with known faults, to measure what siblings tell."""

"""Trainings of public bug reports, rebuilt as logs: what is found of them, and what is named first."""

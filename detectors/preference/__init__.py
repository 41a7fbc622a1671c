"""Preference optimisation."""

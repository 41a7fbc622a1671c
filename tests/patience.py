"""How long tests wait for what is sure to come."""

PATIENCE = 120.0
"""Seconds after which a wait fails. Every wait ends with the event that it waits for, so this only has to be
longer than a busy machine takes."""

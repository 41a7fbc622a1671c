"""Logs that are read to their end: judged, compared and listed."""

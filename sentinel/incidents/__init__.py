"""Incidents: their life, which verdicts merge, what explains what, their causes and words."""

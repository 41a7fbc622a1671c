"""Decides, without side effects, who hears of an incident and why not."""

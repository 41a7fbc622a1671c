"""Watches machine-learning training runs through their metric logs and names what goes wrong."""

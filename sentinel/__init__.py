"""Watches machine-learning training runs through their metric logs and reports what goes wrong."""

CONFIG_FILE = "sentinel.toml"
"""The configuration file that commands read by default."""

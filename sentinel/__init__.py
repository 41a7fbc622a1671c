"""Watches machine-learning training runs through their metric logs and names what goes wrong."""

CONFIG_FILE = "sentinel.toml"
"""What a configuration is called where none is named."""

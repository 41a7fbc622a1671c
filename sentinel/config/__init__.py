"""The configuration: `sentinel.toml` with its tables, and the messages about mistakes in it."""

CONFIG_FILE = "sentinel.toml"
"""The configuration file that commands read by default."""

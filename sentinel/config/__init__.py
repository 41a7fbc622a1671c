"""The configuration: `sentinel.toml` with its tables, and the messages about mistakes in it."""

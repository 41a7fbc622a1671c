"""The training loss itself."""

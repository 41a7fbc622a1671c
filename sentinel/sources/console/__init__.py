"""The text that a training prints."""

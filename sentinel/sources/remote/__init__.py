"""Logs behind an address: their files are copied as they grow."""

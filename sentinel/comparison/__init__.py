"""Compares runs with one another: what no single log can show."""

"""Rules that recognise failing training runs in their metric logs: a pure library over polars."""

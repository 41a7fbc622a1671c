"""Readers of growing logs: one format, one file. `base` is the contract, `discovery` finds runs."""

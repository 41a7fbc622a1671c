"""Readers of growing logs, one package for each format. `base` is the contract, `discovery` finds runs."""

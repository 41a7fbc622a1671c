"""Follows logs while they grow: finds runs, reads them, records the results, and notifies."""

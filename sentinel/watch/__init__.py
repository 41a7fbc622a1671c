"""Follows logs while they grow: finds runs, reads on, records, and tells."""

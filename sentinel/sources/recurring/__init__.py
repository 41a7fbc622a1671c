"""Consoles of no known form: what recurs in them is a record."""

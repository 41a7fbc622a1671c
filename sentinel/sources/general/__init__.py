"""Logs of no known format: what recurs is a record, and the content says whether it is of a training."""

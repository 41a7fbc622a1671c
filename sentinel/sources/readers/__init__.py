"""What formats share: files that grow, records and their steps, settings, databases."""

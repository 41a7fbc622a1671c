"""Rules over what is measured on held-out data."""

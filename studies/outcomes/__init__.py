"""How often the product finds the outcome of strangers' runs."""

"""Where notifications go: one sink a file. Only `delivery` retries."""

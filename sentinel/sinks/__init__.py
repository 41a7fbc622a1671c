"""Sends notifications: one file for each sink. `delivery` retries for all of them."""

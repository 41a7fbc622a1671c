"""Sends notifications: one file for each sink. Only `delivery` retries."""

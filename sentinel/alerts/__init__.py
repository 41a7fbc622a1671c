"""Turns verdicts into incidents, decides who hears of them, and stores both."""

"""Fits the score cards of `sentinel.detectors.reading` to labelled logs, and measures them."""

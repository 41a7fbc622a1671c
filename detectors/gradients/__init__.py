"""Gradient norms."""

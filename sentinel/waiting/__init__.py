"""Waits until a run needs somebody or all runs are over; what `sentinel wait` and agents use."""

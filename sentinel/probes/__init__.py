"""Numbers that a training logs with one line, for what its own metrics cannot show."""

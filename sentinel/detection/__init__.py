"""How the rows of runs become verdicts."""

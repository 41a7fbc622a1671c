"""Speed, memory and restarts, as far as rows tell."""

"""A replay for people (terminal) and for programs (JSON)."""

"""The state on disk: incidents, outbox, what was sent, and the lock of the one writer."""

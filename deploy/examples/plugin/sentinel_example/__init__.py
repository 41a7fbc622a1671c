"""What a team adds to sentinel for itself."""

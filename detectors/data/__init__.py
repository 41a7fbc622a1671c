"""What reaches the model."""

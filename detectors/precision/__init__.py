"""Number formats and loss scaling."""

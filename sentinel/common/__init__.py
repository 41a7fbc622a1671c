"""What every room stands on, and what knows no room."""

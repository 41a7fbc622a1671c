"""What a watch tells other programs about itself: metrics and health."""

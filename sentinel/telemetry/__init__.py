"""What a watch reports to other programs about itself: metrics and health."""

"""What a watch tells other programs about itself: metrics, health and a heartbeat."""

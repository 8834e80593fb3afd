"""What mounts cost, and how jobs share them."""

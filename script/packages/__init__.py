"""What script/package does."""

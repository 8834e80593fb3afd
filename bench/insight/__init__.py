"""What it costs to ask about the past, and to keep it."""

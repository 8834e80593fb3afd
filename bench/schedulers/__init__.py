"""What the policies of scheduling cost, and how well they share."""

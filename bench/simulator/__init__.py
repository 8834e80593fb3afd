"""What the simulator costs, how it compares with real servers, and studies with it."""

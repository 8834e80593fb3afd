"""Applications over several servers: what is fair over all of them, and what they got."""

"""The control port of a proxy: its messages, clients of it, and attacks on it."""

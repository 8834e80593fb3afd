"""Programs on loopback, loads on them, tables and figures of what was measured."""

"""A whole site in network namespaces, faults for it, and checks from outside (docs/chaos.md)."""

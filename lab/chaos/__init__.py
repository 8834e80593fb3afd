"""A whole site in network namespaces, faults for it, and checks from the outside (docs/chaos.md)."""

"""Attacks on proxies and mounts, and what their victims keep."""

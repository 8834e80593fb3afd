"""Measurements of record: the set that is run, files of what was found, passages that show it."""

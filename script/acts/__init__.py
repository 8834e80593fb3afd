"""The acts of script/demo after the first."""

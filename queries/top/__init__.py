"""The fleet in a terminal."""

"""Change points in the history of a fleet: when a figure became another one, and what else changed then."""

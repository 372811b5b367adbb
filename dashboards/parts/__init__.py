"""What several pages draw: controls, and what is said of the data's state."""

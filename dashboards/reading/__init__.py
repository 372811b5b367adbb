"""What the pages read, shared by all viewers and never an exception."""

"""The story of a slow cell, as text and as a timeline."""

"""Marks in time that people make, and what they concern."""

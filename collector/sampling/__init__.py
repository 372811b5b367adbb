"""Sampling that keeps the truth: healthy cells are kept as rollups, all others whole."""

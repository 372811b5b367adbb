"""Rows as sentences and tables: pure functions, so that tests need no browser."""

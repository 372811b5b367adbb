"""Backups of the embedded store with its spool: made while the collector runs, looked over, and put back."""

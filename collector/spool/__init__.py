"""The durable spool: what was accepted and is not yet stored, on disk, in SQLite."""

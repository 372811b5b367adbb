"""ClickHouse's HTTP protocol over the embedded engine, read-only, for other processes on this machine."""

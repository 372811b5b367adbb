"""ClickHouse as the collector uses it: opened, brought up to date, written to, bounded, and kept no longer than asked."""

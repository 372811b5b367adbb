"""Where executions come from that no recorder saw: one package for each source."""

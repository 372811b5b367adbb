"""Replay: what another cost model would have done with the recorded executions."""

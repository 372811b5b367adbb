"""Cells judged and hours settled once, when their executions are there, so that live questions need not."""

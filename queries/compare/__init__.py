"""Two arms of a benchmark compared, cell against cell: pairs, shifts with intervals, verdicts."""

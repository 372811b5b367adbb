"""What is wrong with a cell, and what is not: pure functions from stored executions to typed findings."""

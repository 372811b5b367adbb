"""What the pages ask of a fleet, a cell or a graph, and in which time."""

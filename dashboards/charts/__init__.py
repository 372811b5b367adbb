"""One chart a file, each a pure function from rows of the query catalogue to an Altair chart."""

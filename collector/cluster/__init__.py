"""The schema on a cluster: the same files, each statement in the form that a cluster wants."""

"""Who may come in by which door: credentials, certificates, host names."""

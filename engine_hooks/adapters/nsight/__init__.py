"""Nsight Systems SQLite exports. `export` opens a file and asks it, `profile` keeps what matters of it in columns."""

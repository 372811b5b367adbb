"""What `tachograph` does of this room: a module for each command."""

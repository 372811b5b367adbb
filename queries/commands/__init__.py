"""What each `tachograph` command of this room does, a module each."""

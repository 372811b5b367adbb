"""`tachograph simulate`, one module for each of its commands."""

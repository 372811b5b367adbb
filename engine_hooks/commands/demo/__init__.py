"""`tachograph demo`: real engines to look at."""

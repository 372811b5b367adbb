"""Commands of this room, one module each; `tachograph.py` registers them."""

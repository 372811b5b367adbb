"""The forms of the log, apart from what writes it, so that settings can name them without it."""

from typing import Literal

LogFormat = Literal["auto", "console", "json"]
"""`auto` is `console` on a terminal and `json` elsewhere."""

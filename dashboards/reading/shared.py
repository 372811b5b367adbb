"""One reading for all viewers: kept for a while, shown while a newer one is fetched, and standing in where none comes.

Ten viewers cost ClickHouse what one costs.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, ParamSpec, TypeVar

import streamlit as st

Reading = TypeVar("Reading")
Asked = ParamSpec("Asked")
Key = tuple[object, ...]


def shared(
    fresh_s: float, entries_max: int, saying: str = ""
) -> Callable[[Callable[Asked, Reading]], Callable[Asked, Reading]]:
    """Read for the first viewer who asks; every other one is given the same, for as long as it is fresh.

    An older one is shown while a newer one is read in the background.

    Args:
        fresh_s: How old a reading may be, in s.
        entries_max: Readings kept, of different arguments; the least recently asked for goes first.
        saying: What stands there while the first one is read; '' says nothing.
    """
    return st.cache_data(
        ttl=fresh_s,
        refresh_mode="background",
        max_entries=entries_max,
        show_spinner=saying or False,
        scope="global",
    )


class LastGood(Generic[Reading]):
    """The last good reading of each key, a bounded number of them; safe to share between threads."""

    def __init__(self, nothing: Reading, entries_max: int) -> None:
        """
        Args:
            nothing: What is known of a key that never had a good reading.
            entries_max: Readings kept; the one that was kept longest goes first.
        """
        self._nothing = nothing
        self._entries_max = entries_max
        self._lock = Lock()
        self._readings: OrderedDict[Key, Reading] = OrderedDict()

    def keep(self, key: Key, reading: Reading) -> None:
        """Remember one, and forget the one that was kept longest."""
        with self._lock:
            self._readings[key] = reading
            self._readings.move_to_end(key)
            while len(self._readings) > self._entries_max:
                self._readings.popitem(last=False)

    def recall(self, key: Key) -> Reading:
        """The last good one, or one that knows nothing."""
        with self._lock:
            return self._readings.get(key, self._nothing)

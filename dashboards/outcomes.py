"""What the pages show besides answers of the catalogue: stories, comparisons, replays and changes.

Like `dashboards.answers`: computed once for all viewers, and never an exception. Each takes a tenth of a
second to many, so an older outcome is shown while a newer one is computed.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Generic, TypeVar

import streamlit as st

from queries.changes.found import Change, changes_in
from queries.changes.history import METRICS, Metric, stored_series
from queries.compare.comparison import Comparison
from queries.compare.comparison import Metric as ComparedMetric
from queries.compare.stored import compare_stored
from queries.errors import QueriesError, RefusedError, UnreachableError
from queries.postmortem.story import Story
from queries.postmortem.told import told
from queries.replay.replaying import SEEDS, Form, replayed
from queries.replay.result import Replay

T = TypeVar("T")
Key = tuple[object, ...]

STORY_FRESH_S = 10
COMPARISON_FRESH_S = 30
CHANGES_FRESH_S = 60
REPLAY_FRESH_S = 600
"""A cell that has ended is replayed the same for ever; only the record's last rows may still arrive."""
OUTCOMES_MAX = 24
"""Outcomes kept of each kind; the least recently asked for goes first."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What is known of something computed."""

    value: T | None = None
    at: datetime | None = None
    """When it was computed, UTC; None where it never was."""
    problem: str = ""
    """What is wrong with ClickHouse now, in one line; '' where nothing is."""
    refusal: str = ""
    """Why there is nothing to compute, though ClickHouse answered; '' where there is."""


class LastOutcomes:
    """The last good outcomes, at most `OUTCOMES_MAX` of them; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outcomes: OrderedDict[Key, Outcome[Any]] = OrderedDict()

    def keep(self, key: Key, outcome: Outcome[Any]) -> None:
        """Remember one, and forget the one that was kept longest."""
        with self._lock:
            self._outcomes[key] = outcome
            self._outcomes.move_to_end(key)
            while len(self._outcomes) > OUTCOMES_MAX:
                self._outcomes.popitem(last=False)

    def recall(self, key: Key) -> Outcome[Any]:
        """The last good one, or one that knows nothing."""
        with self._lock:
            return self._outcomes.get(key, Outcome())


LAST_GOOD = LastOutcomes()


def attempted(key: Key, compute: Callable[[], T]) -> Outcome[T]:
    """What comes of a computation; where ClickHouse is away, the last good outcome of the same key stands in."""
    try:
        value = compute()
    except (UnreachableError, RefusedError) as wrong:
        return replace(LAST_GOOD.recall(key), problem=str(wrong))
    except QueriesError as wrong:
        return Outcome(at=datetime.now(UTC), refusal=str(wrong))
    good = Outcome(value, datetime.now(UTC))
    LAST_GOOD.keep(key, good)
    return good


@st.cache_data(
    ttl=STORY_FRESH_S,
    refresh_mode="background",
    max_entries=OUTCOMES_MAX,
    show_spinner="Looking for what happened …",
    scope="global",
)
def story(url: str, instance: str, cell: str) -> Outcome[Story]:
    """The post-mortem of a cell."""
    return attempted(("story", url, instance, cell), lambda: told(url, cell, instance).story)


@st.cache_data(
    ttl=COMPARISON_FRESH_S,
    refresh_mode="background",
    max_entries=OUTCOMES_MAX,
    show_spinner="Comparing the arms …",
    scope="global",
)
def comparison(
    url: str, arms: tuple[str, str], by: tuple[str, ...], metric: str, since: str | None
) -> Outcome[Comparison]:
    """Two arms compared.

    Args:
        url: ClickHouse.
        arms: The arm compared with, and the arm judged.
        by: Labels whose values make a row of their own.
        metric: A `queries.compare.comparison.Metric`.
        since: The time range's beginning, `-24h`; None is all stored time.
    """
    return attempted(
        ("comparison", url, arms, by, metric, since),
        lambda: compare_stored(url, arms, by=by, metric=ComparedMetric(metric), from_=since),
    )


@st.cache_data(
    ttl=CHANGES_FRESH_S,
    refresh_mode="background",
    max_entries=OUTCOMES_MAX,
    show_spinner="Looking for changes …",
    scope="global",
)
def changes(url: str, metric: str, since: str | None, shift_min_percent: float) -> Outcome[list[Change]]:
    """Changes of level in the whole fleet, the latest first."""
    chosen = Metric(metric)

    def compute() -> list[Change]:
        return changes_in(stored_series(url, chosen, METRICS[chosen].by, since), chosen, shift_min_percent)

    return attempted(("changes", url, metric, since, shift_min_percent), compute)


@st.cache_data(
    ttl=REPLAY_FRESH_S,
    refresh_mode="background",
    max_entries=OUTCOMES_MAX,
    show_spinner="Taking each decision again …",
    scope="global",
)
def exact_replay(url: str, instance: str, cell: str, model: str) -> Outcome[Replay]:
    """Every decision of a cell taken again by a cost model."""
    return attempted(
        ("exact", url, instance, cell, model), lambda: replayed(url, instance, cell, model, form=Form.EXACT)
    )


@st.cache_data(
    ttl=REPLAY_FRESH_S,
    refresh_mode="background",
    max_entries=OUTCOMES_MAX,
    show_spinner="Simulating the cell under the other cost model; this takes some seconds …",
    scope="global",
)
def simulated_replay(url: str, instance: str, cell: str, model: str) -> Outcome[Replay]:
    """A cell simulated under a cost model."""
    return attempted(
        ("closed loop", url, instance, cell, model),
        lambda: replayed(url, instance, cell, model, form=Form.CLOSED_LOOP, seeds=SEEDS),
    )

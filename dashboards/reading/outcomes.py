"""What the pages show besides answers of the catalogue: stories, comparisons, replays and changes.

Like `dashboards.reading.answers`: computed once for all viewers, and never an exception. Each takes a tenth of a
second to many, so an older outcome is shown while a newer one is computed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

from dashboards.reading.shared import Key, LastGood, shared
from queries.changes.found import Change, Extent, changes_in, extents_of
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
Time = tuple[str | None, str | None]
"""Beginning and end of a time range as queries take them, `-24h`; None is without one."""

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


LAST_GOOD: LastGood[Outcome[Any]] = LastGood(Outcome(), OUTCOMES_MAX)


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


@shared(STORY_FRESH_S, OUTCOMES_MAX, "Looking for what happened …")
def story(url: str, instance: str, cell: str) -> Outcome[Story]:
    """The post-mortem of a cell."""
    return attempted(("story", url, instance, cell), lambda: told(url, cell, instance).story)


@shared(COMPARISON_FRESH_S, OUTCOMES_MAX, "Comparing the arms …")
def comparison(url: str, arms: tuple[str, str], by: tuple[str, ...], metric: str, time: Time) -> Outcome[Comparison]:
    """Two arms compared.

    Args:
        url: ClickHouse.
        arms: The arm compared with, and the arm judged.
        by: Labels whose values make a row of their own.
        metric: A `queries.compare.comparison.Metric`.
        time: Beginning and end.
    """
    return attempted(
        ("comparison", url, arms, by, metric, time),
        lambda: compare_stored(url, arms, by=by, metric=ComparedMetric(metric), from_=time[0], to=time[1]),
    )


class Search(NamedTuple):
    """What a search for changes of level came to."""

    changes: list[Change]
    """The latest first."""
    extents: tuple[Extent, ...]
    """Of every series that was looked through."""


@shared(CHANGES_FRESH_S, OUTCOMES_MAX, "Looking for changes …")
def changes(url: str, metric: str, time: Time, shift_min_percent: float) -> Outcome[Search]:
    """Changes of level in the whole fleet."""
    chosen = Metric(metric)

    def compute() -> Search:
        series = stored_series(url, chosen, METRICS[chosen].by, *time).series
        return Search(changes_in(series, chosen, shift_min_percent), extents_of(series))

    return attempted(("changes", url, metric, time, shift_min_percent), compute)


@shared(REPLAY_FRESH_S, OUTCOMES_MAX, "Taking each decision again …")
def exact_replay(url: str, instance: str, cell: str, model: str) -> Outcome[Replay]:
    """Every decision of a cell taken again by a cost model."""
    return attempted(
        ("exact", url, instance, cell, model), lambda: replayed(url, instance, cell, model, form=Form.EXACT)
    )


@shared(REPLAY_FRESH_S, OUTCOMES_MAX, "Simulating the cell under the other cost model; this takes some seconds …")
def simulated_replay(url: str, instance: str, cell: str, model: str) -> Outcome[Replay]:
    """A cell simulated under a cost model."""
    return attempted(
        ("closed loop", url, instance, cell, model),
        lambda: replayed(url, instance, cell, model, form=Form.CLOSED_LOOP, seeds=SEEDS),
    )

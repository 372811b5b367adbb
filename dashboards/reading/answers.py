"""Answers of the query catalogue as the pages see them: shared by all viewers, and never an exception.

Ten viewers cost ClickHouse what one costs: an answer is kept for `FRESH_S`, and an older one is
shown while a newer one is fetched. Where ClickHouse is away, the last good answer stands in,
with its age and what is wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeAlias

import pandas as pd

from dashboards.reading.shared import LastGood, shared
from dashboards.reading.store import clickhouse_url
from queries.errors import QueriesError
from queries.runner import run

REFRESH_S = 2.0
"""How often a live page asks again, in s."""
FRESH_S = 1.5
"""An answer younger than this is shown without asking, in s; just under `REFRESH_S`, so that every tick asks once."""
SLOW_FRESH_S = 30.0
"""The same for questions about half a day or more, which take long, and about a held time: both hardly change."""
ANSWERS_MAX = 48
"""Answers kept, of different questions or parameters; the least recently asked goes first."""


@dataclass(frozen=True)
class Answer:
    """What is known of a question."""

    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    at: datetime | None = None
    """When ClickHouse gave these rows, UTC; None where it never did."""
    problem: str = ""
    """What is wrong now, in one line; '' where nothing is."""

    @property
    def known(self) -> bool:
        """Whether ClickHouse ever answered."""
        return self.at is not None


Ask: TypeAlias = Callable[..., Answer]
"""`answer` or `slow_answer`."""
LAST_GOOD = LastGood(Answer(), ANSWERS_MAX)


def answer(question: str, **parameters: str | int) -> Answer:
    """What is known of a query of the catalogue. Raises nothing that ClickHouse or the network cause.

    Args:
        question: Name of the query.
        parameters: Its parameters; a trailing underscore is dropped (`from_`). Times stay relative
            (`-30m`), so that all viewers of a range share one answer.
    """
    named = tuple(sorted((name.removesuffix("_"), value) for name, value in parameters.items()))
    return shared_answer(clickhouse_url(), question, named)


def slow_answer(question: str, **parameters: str | int) -> Answer:
    """The same as `answer`, asked again after `SLOW_FRESH_S` only; sooner where ClickHouse is away, to see it come back."""
    named = tuple(sorted((name.removesuffix("_"), value) for name, value in parameters.items()))
    told = shared_slow_answer(clickhouse_url(), question, named)
    return shared_answer(clickhouse_url(), question, named) if told.problem else told


@shared(FRESH_S, ANSWERS_MAX, "Asking ClickHouse …")
def shared_answer(url: str, question: str, parameters: tuple[tuple[str, str | int], ...]) -> Answer:
    """One answer for all viewers. A failure is an answer too, so that a store that is away is not asked by each."""
    return asked_now(url, question, parameters)


@shared(SLOW_FRESH_S, ANSWERS_MAX, "Asking ClickHouse …")
def shared_slow_answer(url: str, question: str, parameters: tuple[tuple[str, str | int], ...]) -> Answer:
    """The same, kept for longer."""
    return asked_now(url, question, parameters)


def asked_now(url: str, question: str, parameters: tuple[tuple[str, str | int], ...]) -> Answer:
    """What ClickHouse says now, or the last good answer with what is wrong."""
    key = (url, question, parameters)
    try:
        rows = run(question, url, "pandas", **dict(parameters))
    except QueriesError as wrong:
        return replace(LAST_GOOD.recall(key), problem=str(wrong))
    good = Answer(in_utc(rows), datetime.now(UTC))
    LAST_GOOD.keep(key, good)
    return good


def in_utc(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their zone said: the runner's times are UTC without a word."""
    times = rows.select_dtypes("datetime").columns
    return rows.assign(**{name: rows[name].dt.tz_localize(UTC) for name in times})

"""What the SQL page asks: a query of the catalogue, or SQL that somebody wrote just now. Never an exception.

Answers are shared by all viewers of one question, and stand until somebody asks anew: a console does not refresh by itself.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import streamlit as st

from dashboards.reading.answers import Answer, in_utc
from dashboards.reading.shared import LastGood
from dashboards.reading.store import clickhouse_url
from queries.ad_hoc import ROWS_MAX, ask, ask_raw
from queries.catalogue import Query, load
from queries.errors import QueriesError
from queries.runner import RawFormat, run, run_raw

KEPT_S = 300.0
"""An answer is shown for so long without asking again, in s."""
ANSWERS_MAX = 16
"""Answers kept; a console's may be large."""
PARAMETER_PREFIX = "p_"
"""Before a parameter's name in the URL, so that none is taken for a filter of another page."""

INSTANT_TYPE = re.compile(r"(Nullable\(|LowCardinality\()*DateTime")
FLOAT_TYPE = re.compile(r"(Nullable\(|LowCardinality\()*Float(32|64)")
LAST_GOOD = LastGood(Answer(), ANSWERS_MAX)


class Question(NamedTuple):
    """What was asked: a query of the catalogue with its values, or a statement."""

    query: str = ""
    values: tuple[tuple[str, str], ...] = ()
    sql: str = ""

    def __bool__(self) -> bool:
        return bool(self.query or self.sql.strip())


def told(question: Question) -> Answer:
    """What ClickHouse answers; where it refuses, why, in its own line."""
    url = clickhouse_url()
    try:
        good = shared(url, question)
    except QueriesError as wrong:
        return replace(LAST_GOOD.recall((url, question)), problem=str(wrong))
    LAST_GOOD.keep((url, question), good)
    return good


def forget(question: Question) -> None:
    """Ask this question anew the next time."""
    shared.clear(clickhouse_url(), question)


@st.cache_data(ttl=KEPT_S, max_entries=ANSWERS_MAX, show_spinner="Asking ClickHouse …", scope="global")
def shared(url: str, question: Question) -> Answer:
    """One answer for all viewers; failures are not kept."""
    if question.query:
        rows = in_utc(run(question.query, url, "pandas", **dict(question.values)))
    else:
        rows = written_rows(url, question.sql)
    return Answer(rows, datetime.now(UTC))


def written_rows(url: str, sql: str) -> pd.DataFrame:
    """The first `ROWS_MAX` rows of a statement's answer, instants in UTC, columns of one name told apart."""
    answer = ask(url, sql, ROWS_MAX)
    rows = pd.DataFrame(answer.rows, columns=told_apart(answer.columns))
    for at, (column, type_) in enumerate(zip(rows.columns, answer.types, strict=True)):
        if INSTANT_TYPE.match(type_):
            rows[column] = pd.to_datetime(rows[column], utc=True)
        elif FLOAT_TYPE.match(type_):
            # pandas' own floats have one sign for what is no number and for what is not there.
            values = pa.array([row[at] for row in answer.rows], pa.float64(), from_pandas=False)
            rows[column] = pd.Series(pd.arrays.ArrowExtensionArray(values))
    return rows


def told_apart(names: tuple[str, ...]) -> list[str]:
    """The same names, a repeated one with its number."""
    return [
        name if name not in names[:at] else f"{name} ({names[:at].count(name) + 1})" for at, name in enumerate(names)
    ]


def as_file(question: Question, format: RawFormat) -> bytes:
    """The answer as ClickHouse writes it, exact.

    Raises:
        QueriesError: ClickHouse does not answer, or refuses.
    """
    if question.query:
        return run_raw(question.query, clickhouse_url(), format, dict(question.values))
    return ask_raw(clickhouse_url(), question.sql, format)


def by_topic() -> dict[str, list[Query]]:
    """The catalogue, by topic."""
    topics: dict[str, list[Query]] = {}
    for query in load().values():
        topics.setdefault(query.topic, []).append(query)
    return dict(sorted(topics.items()))

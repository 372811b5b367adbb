"""Clocks of engines may say anything up to the year 2262: no question dies of it, and one such clock hides no other engine.

An instant of 32 bits ends in 2106 (`DateTime`, `toUnixTimestamp`), one of 64 bits in nanoseconds in April 2262.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from clickhouse_connect.driver.client import Client

from collector.judging.judging import judge_cells
from engine_hooks.contract.execution import EngineResource, GraphExecution
from queries.catalogue import Query, load
from tests.fixtures.asking import START, ask
from tests.fixtures.databases import database
from tests.fixtures.query_rows import ENGINE, believing, insert, round_of

NOW = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=2)
FAR = {
    "engine-2150": datetime(2150, 6, 1, tzinfo=UTC),
    "engine-2163": NOW + timedelta(seconds=2**32),
    "engine-2200": datetime(2200, 6, 1, tzinfo=UTC),
    "engine-2261": datetime(2261, 12, 31, 23, 59, 50, tzinfo=UTC),
    "engine-2262": datetime(2262, 4, 11, 23, 47, 16, tzinfo=UTC),
}
"""2163: after as many seconds as 32 bits count, it is now again. 2262: the last whole second of all."""
BEGINNINGS: list[dict[str, object]] = [{}, {"from": "-30d"}, {"last_s": 0}]


def rounds(begun: datetime, first: int = 0, **fields: object) -> list[GraphExecution]:
    """Four rounds in 52 ms, every other one plain."""
    begun_ms = (begun - START) / timedelta(milliseconds=1)
    decided = believing({"decode": (13, 4), "P128": (28, 9)})
    return [
        round_of(first + n, begun_ms + 13 * n, ("decode", "P128")[n % 2], 13, **decided, **fields) for n in range(4)
    ]


def named(instance: str) -> EngineResource:
    return ENGINE._replace(service_instance_id=instance, host_name=f"host of {instance}")


@pytest.fixture(scope="module")
def far_years(store: Client) -> Iterator[Client]:
    """An engine of now, and five whose clocks are off by centuries, each with a cell that is judged and one that is not."""
    with database(store):
        insert(store, rounds(NOW))
        for instance, begun in FAR.items():
            insert(store, rounds(begun), named(instance))
        judge_cells(store)
        for instance, begun in FAR.items():
            insert(store, rounds(begun, 4, cell_id="bench-1", cell_arm="after"), named(instance))
        yield store


@pytest.mark.parametrize("query", load().values(), ids=lambda query: query.name)
def test_every_question_is_answered(far_years: Client, query: Query) -> None:
    known = {parameter.name for parameter in query.parameters}
    for given in BEGINNINGS:
        if given.keys() <= known:
            ask(far_years, query.name, **given)


def test_steps_of_the_rest_are_what_they_would_be(far_years: Client) -> None:
    rows = ask(far_years, "graph_history", **{"from": NOW - timedelta(hours=1)})
    steps = {(row["service_instance_id"], row["graph_name"]): row for row in rows}
    assert {row["step_s"] for row in rows} == {30}
    for instance, begun in {
        "engine-1": NOW,
        "engine-2150": FAR["engine-2150"],
        "engine-2163": FAR["engine-2163"],
    }.items():
        row = steps[instance, "P128"]
        assert 0 <= (begun - row["step_started_at"].replace(tzinfo=UTC)).total_seconds() < 30, instance
        is_ahead = row["step_started_at"] > row["last_received_at"]
        assert is_ahead == (instance != "engine-1")


def test_cells_that_nobody_judged_are_told_to_the_end_of_time(far_years: Client) -> None:
    rows = ask(far_years, "inflated_times")
    begun = {row["since"].replace(tzinfo=UTC) for row in rows}
    assert set(FAR.values()) <= begun
    assert all(row["until"] > row["since"] or row["since"].year == 2262 for row in rows)


def test_rollups_that_cannot_hold_such_a_year_are_no_difference(far_years: Client) -> None:
    for begin in (datetime(1970, 1, 2, tzinfo=UTC), NOW - timedelta(hours=1)):
        assert ask(far_years, "rollup_differences", **{"from": begin}) == []

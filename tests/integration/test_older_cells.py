"""Cells that executions arrived for long before anybody judged: a restored backup, a long pause."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from collector.judging.judging import WALK_EVERY_S, CellJudge
from collector.store.client import StoreClient
from engine_hooks.contract.span import EXECUTION_COLUMNS
from tests.fixtures.asking import ask
from tests.fixtures.query_rows import ENGINE, believing, insert, round_of, row_of

NOW = datetime.now(UTC)
DAYS_AGO = (3, 9, 10, 20)
FOOLED = believing({"decode": (13, 4), "P128": (34.5, 10)})
APART = 1_000_000
"""Rounds of 30 ms between two cells: eight hours, so that each takes a statement of its own."""


def arrived(client: Client, days_ago: int) -> None:
    """A cell that is stuck, of an engine of that day, the later the later."""
    engine = ENGINE._replace(service_instance_id=f"{days_ago} days ago")
    first = (max(DAYS_AGO) - days_ago) * APART
    rounds = [
        round_of(first + n, (first + n) * 30, *(("P128", 28) if n < 8 else ("decode", 13)), **FOOLED)
        for n in range(400)
    ]
    received_at = NOW - timedelta(days=days_ago)
    rows = [[*row_of(one, engine), received_at] for one in rounds]
    client.insert("new_executions", rows, column_names=[*EXECUTION_COLUMNS, "received_at"])


def told(client: Client) -> dict[str, tuple[Any, Any]]:
    rows = ask(client, "live_cells", last_s=0)
    return {row["service_instance_id"]: (row["judged"], row["inflated"]) for row in rows}


class Judging:
    """One who judges, by a clock that only the test moves."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.now_s = 0.0
        self.judge = CellJudge(StoreClient(lambda: client), clock=lambda: self.now_s)

    def looks(self, times: int) -> list[int]:
        """Statements of so many looks."""
        return [self.judge.look(self.client) for _ in range(times)]


def test_what_arrived_days_ago_is_judged_too_the_latest_first(clickhouse: Client) -> None:
    for days_ago in DAYS_AGO:
        arrived(clickhouse, days_ago)
    judging = Judging(clickhouse)
    # A statement for each day, and after it a look that finds no more of that day.
    assert judging.looks(1) == [1]
    assert told(clickhouse) == {f"{ago} days ago": (ago == 3, ago == 3) for ago in DAYS_AGO}
    assert judging.looks(9) == [0, 1, 0, 1, 0, 1, 0, 0, 0]
    assert told(clickhouse) == {f"{ago} days ago": (True, True) for ago in DAYS_AGO}


def test_what_cannot_be_judged_holds_up_nothing(clickhouse: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived(clickhouse, 3)
    arrived(clickhouse, 9)
    judging = Judging(clickhouse)
    with monkeypatch.context() as failing:
        failing.setattr(clickhouse, "command", refused)
        with pytest.raises(DatabaseError):
            judging.looks(1)
    assert judging.looks(4) == [0, 1, 0, 0]
    assert told(clickhouse) == {"3 days ago": (False, False), "9 days ago": (True, True)}


def refused(*_: Any, **__: Any) -> None:
    raise DatabaseError("memory limit exceeded")


def test_while_executions_arrive_it_goes_slowly(clickhouse: Client) -> None:
    for days_ago in DAYS_AGO:
        arrived(clickhouse, days_ago)
    judging, statements = Judging(clickhouse), []
    for n in range(4):
        insert(clickhouse, [round_of(n, n * 30, "P128", 28, **FOOLED)])
        statements += judging.looks(1)
        judging.now_s += WALK_EVERY_S / 2
    assert statements == [2, 1, 1, 1], "the second step back finds no more of the first day"
    assert judging.looks(1) == [1]


def test_a_store_without_older_days_is_asked_for_them_once(clickhouse: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    query = clickhouse.query

    def seen(statement: str, **given: Any) -> Any:
        asked.append(statement)
        return query(statement, **given)

    monkeypatch.setattr(clickhouse, "query", seen)
    assert Judging(clickhouse).looks(4) == [0, 0, 0, 0]
    assert len([one for one in asked if "received_on < {day:Date}" in one]) == 1
    assert len(asked) == 5

"""What `tachograph top` asks for once it knows the newest execution: the same cells, without looking for where they begin."""

from datetime import timedelta
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import EngineResource
from engine_hooks.contract.span import EXECUTION_COLUMNS
from queries.runner import Rows, run
from queries.top import seen
from queries.top.seen import FRESH, Seen, look
from tests.fixtures.asking import START
from tests.fixtures.query_rows import ENGINE, round_of, row_of

LAST_S = 600
AHEAD = ENGINE._replace(service_instance_id="engine-9", host_name="node-9")


def arrive(client: Client, at_s: range, engine: EngineResource = ENGINE, ahead_s: int = 0) -> None:
    """A round at each of these seconds, arriving as it ends; their engine's clock is ahead by so much."""
    rows = [
        [*row_of(round_of(at, 1000.0 * (at + ahead_s), "decode", 13), engine), START + timedelta(seconds=at + 0.013)]
        for at in at_s
    ]
    client.insert("new_executions", rows, column_names=[*EXECUTION_COLUMNS, "received_at"])


@pytest.fixture
def asked_by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """By what each question about cells said where the time begins."""
    asked: list[str] = []

    def noting(name: str, url: str, format: Any, **values: Any) -> Rows:
        if name == "live_cells":
            asked.append("from" if "from" in values else "last_s")
        rows: Rows = run(name, url, format, **values)
        return rows

    monkeypatch.setattr(seen, "run", noting)
    return asked


def cells(known: Seen) -> dict[str, list[str]]:
    """The cells of each engine, by the second that they begin at."""
    assert not known.problem
    return {
        one.service_instance_id: [f"{(cell.started_at - START).total_seconds():.0f}" for cell in one.cells]
        for one in known.engines
    }


def test_what_is_known_is_not_looked_for(clickhouse: Client, clickhouse_url: str, asked_by: list[str]) -> None:
    arrive(clickhouse, range(0, 700, 10))
    known = look(clickhouse_url, LAST_S, Seen())
    assert cells(known) == {"engine-1": [str(at) for at in range(90, 700, 30)]}
    arrive(clickhouse, range(700, 760, 10))
    arrive(clickhouse, range(0, 760, 10), AHEAD, ahead_s=300)
    later = look(clickhouse_url, LAST_S, known)
    assert asked_by == ["last_s", "from"]
    assert cells(later)["engine-1"] == [str(at) for at in range(150, 760, 30)]
    assert later.newest == START + timedelta(seconds=750.013)
    anew = look(clickhouse_url, LAST_S, Seen())
    assert later.engines == anew.engines
    assert look(clickhouse_url, 2 * LAST_S, later).engines == look(clickhouse_url, 2 * LAST_S, Seen()).engines
    assert asked_by[2:] == ["last_s", "from", "last_s"]


def test_what_is_gone_is_forgotten(clickhouse: Client, clickhouse_url: str, asked_by: list[str]) -> None:
    """Another store behind the same address, in which an older record is played."""
    arrive(clickhouse, range(7200, 7300, 10))
    known = look(clickhouse_url, LAST_S, Seen())
    for table in ("graph_executions", "cell_windows"):
        clickhouse.command(f"TRUNCATE TABLE {table}")
    gone = look(clickhouse_url, LAST_S, known)
    assert (gone.engines, gone.newest, gone.problem) == ((), None, "")
    arrive(clickhouse, range(0, 60, 10))
    assert cells(look(clickhouse_url, LAST_S, known)) == {"engine-1": ["0", "30"]}
    assert asked_by == ["last_s", "from", "last_s", "from", "last_s"]


def test_what_was_known_long_ago_says_nothing_of_now(
    clickhouse: Client, clickhouse_url: str, asked_by: list[str]
) -> None:
    arrive(clickhouse, range(0, 60, 10))
    known = look(clickhouse_url, LAST_S, Seen())
    assert known.at is not None
    assert look(clickhouse_url, LAST_S, known._replace(at=known.at - FRESH)).engines == known.engines
    assert asked_by == ["last_s", "last_s"]

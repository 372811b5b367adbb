"""Which cells wait to be judged, and in which order: rollups in, stretches out, by the rule as `unjudged_cells.sql` has it."""

from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import NamedTuple

from clickhouse_connect.driver.client import Client

from collector.judging.judging import ALL_S, STRETCHES_AT_ONCE

NOTHING = datetime.fromtimestamp(0, UTC)


class Window(NamedTuple):
    """A row of the rollup; times in s before now."""

    cell: str
    started_ago_s: float
    received_ago_s: float
    executions: int = 100
    judged_ago_s: float | None = None
    """None: this row has no verdict."""
    judged_executions: int = 100


def put(client: Client, now: datetime, *windows: Window) -> None:
    """Cells of one engine, each of one submission as far as its clock goes."""

    def row(one: Window) -> list[object]:
        started, received = (now - timedelta(seconds=ago) for ago in (one.started_ago_s, one.received_ago_s))
        judged_at = NOTHING if one.judged_ago_s is None else now - timedelta(seconds=one.judged_ago_s)
        counted = 0 if one.judged_ago_s is None else one.judged_executions
        judgement = (judged_at, counted, 0.0, 0, NOTHING, NOTHING, 0.0, 0.0, "", [])
        # Before windows there is none; and none has its start after 2106.
        window = started.replace(second=0, microsecond=0) if started.year < 2100 else datetime(2106, 1, 1, tzinfo=UTC)
        times = [started, started, started, received]
        return [received.date(), window, "engine", one.cell, *times, one.executions, judgement]

    names = ["received_on", "window_started_at", "service_instance_id", "cell"]
    names += ["first_started_at", "last_started_at", "last_ended_at", "last_received_at", "executions", "judgement"]
    client.insert("cell_windows", [row(one) for one in windows], column_names=names)


def waiting(client: Client, now: datetime, recent_s: int, stretches: int = STRETCHES_AT_ONCE) -> list[float]:
    """Of each stretch found, in order, how many hours ago its first cell began."""
    statement = files("collector.judging").joinpath("unjudged_cells.sql").read_text("utf-8")
    rows = client.query(statement, parameters={"recent_s": recent_s, "stretches": stretches}).result_rows
    return [round((now - first.replace(tzinfo=UTC)) / timedelta(hours=1)) for first, _, _ in rows]


def test_a_cell_waits_until_it_was_judged_by_all_of_it_and_once_more_after_600_s(clickhouse: Client) -> None:
    now, hour_s, recent_s = datetime.now(UTC), 3600, 3000
    waits = [
        Window("never judged", 1 * hour_s, 100),
        Window("judged by fewer", 2 * hour_s, 100, judged_ago_s=50, judged_executions=99),
        Window("judged by more", 3 * hour_s, 100, judged_ago_s=50, judged_executions=101),
        Window("judged 600 s ago, and before those", 4 * hour_s, 700, judged_ago_s=650),
    ]
    rests = [
        Window("judged at once", 5 * hour_s, 100, judged_ago_s=90),
        Window("judged last", 6 * hour_s, 800, judged_ago_s=150),
        Window("long ago", 7 * hour_s, recent_s + 100),
        Window("after 2106", -90 * 365.25 * 24 * hour_s, 100),
    ]
    put(clickhouse, now, *waits, *rests)
    # Two windows of one cell: by the latest verdict it is whole, by the latest of another it is not.
    whole = Window("whole", 8 * hour_s, 100)
    put(clickhouse, now, whole, whole._replace(started_ago_s=8 * hour_s - 60, judged_ago_s=50, judged_executions=200))
    put(clickhouse, now, whole._replace(executions=0, judged_ago_s=70, judged_executions=150))
    grown = Window("grown", 9 * hour_s, 100, judged_ago_s=70, judged_executions=200)
    put(clickhouse, now, grown, grown._replace(started_ago_s=9 * hour_s - 60, judged_ago_s=50, judged_executions=150))
    # Its last window arrived 50 s before the verdict.
    slow = Window("slow", 10 * hour_s, 2000)
    put(clickhouse, now, slow, Window("slow", 10 * hour_s - 60, 700, judged_ago_s=650, judged_executions=200))
    assert sorted(waiting(clickhouse, now, recent_s)) == [1, 2, 3, 4, 9, 10]
    assert sorted(waiting(clickhouse, now, ALL_S)) == [1, 2, 3, 4, 7, 9, 10]


def test_what_is_live_comes_first_and_of_the_rest_what_has_waited_longest(clickhouse: Client) -> None:
    now, hour_s = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - timedelta(hours=1), 3600
    put(
        clickhouse,
        now,
        Window("live", 3 * hour_s, 3 * hour_s - 590),
        Window("later live", 2 * hour_s, 2 * hour_s - 590),
        Window("ahead", 4 * hour_s, 4 * hour_s + 590),
        Window("imported first", 9 * hour_s, 2 * hour_s),
        Window("imported last, later", 7 * hour_s, 600),
        Window("imported last, earlier", 8 * hour_s, 600),
        Window("beyond 600 s", 6 * hour_s, 6 * hour_s - 620),
    )
    order = [2, 3, 4, 6, 9, 7, 8]
    assert waiting(clickhouse, now, ALL_S) == order
    assert waiting(clickhouse, now, ALL_S, stretches=4) == order[:4]


def test_a_stretch_is_ten_minutes_from_its_first_cell_to_its_last(clickhouse: Client) -> None:
    """By the clock, from 10:30 to 10:40; a cell counts where it begins."""
    began = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    put(clickhouse, began, *(Window(f"{s} s", -s, -s) for s in (-1, 0, 300, 599, 600)))
    put(clickhouse, began, Window("300 s", -700, -700))
    statement = files("collector.judging").joinpath("unjudged_cells.sql").read_text("utf-8")
    rows = clickhouse.query(statement, parameters={"recent_s": ALL_S, "stretches": 9}).result_rows
    assert [
        ((first.replace(tzinfo=UTC) - began).total_seconds(), (last.replace(tzinfo=UTC) - began).total_seconds(), cells)
        for first, last, cells in rows
    ] == [(600, 600, 1), (0, 700, 3), (-1, -1, 1)]

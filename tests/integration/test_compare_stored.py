"""`tachograph compare` and `tachograph changes` over stored executions."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import GraphExecution
from queries.commands.changes import changes
from queries.commands.compare import VerdictName, compare
from queries.compare.errors import FailOnError, NothingToCompareError
from queries.compare.stored import compare_stored
from tests.fixtures.asking import START
from tests.fixtures.query_rows import ENGINE, insert, round_of

ROUNDS = 10
ROUND_MS = 3000.0
"""A round every three seconds: ten rounds are a cell of 30 s."""


class Settings(NamedTuple):
    clickhouse_url: str


def cell(place: int, arm: str, rejected: int = 0, wall_ms: float = ROUND_MS) -> Iterator[GraphExecution]:
    """One cell of P128 rounds back to back; in the last `rejected` of them every draft was rejected."""
    for number in range(ROUNDS):
        sequence = place * ROUNDS + number
        yield round_of(
            sequence,
            place * 31_000 + number * wall_ms,
            "P128",
            wall_ms,
            batch_tokens_emitted=4 if number >= ROUNDS - rejected else 10 + place % 3,
            cell_id=f"cell-{place}",
            cell_arm=arm,
            cell_position=place,
        )


@pytest.fixture
def mirrored(clickhouse: Client, clickhouse_url: str) -> str:
    """Eight pairs; in two rounds of each `after` cell every draft was rejected, on one host."""
    executions = []
    for place in range(16):
        arm = ("before", "after", "after", "before")[place % 4]
        executions += cell(place, arm, rejected=2 if arm == "after" else 0)
    insert(clickhouse, executions)
    return clickhouse_url


def test_full_rejections_count(mirrored: str) -> None:
    # Without those rounds both arms emit the same number of tokens a round.
    comparison = compare_stored(mirrored, by=("host",))
    (row,) = comparison.rows
    assert (row.labels, row.shift.pairs, row.verdict) == (("node-1",), 8, "worse")
    assert row.shift.hodges_lehmann == pytest.approx(-13, abs=4)
    assert comparison.left_out == ()


def emitting(clickhouse: Client, host: str, tokens: Callable[[str, int], int | None]) -> None:
    """Eight pairs on a host; each round of a cell emits what `tokens` says of its arm and place."""
    arms = [("before", "after", "after", "before")[place % 4] for place in range(16)]
    insert(
        clickhouse,
        [
            one._replace(batch_tokens_emitted=tokens(arm, place))
            for place, arm in enumerate(arms)
            for one in cell(place, arm)
        ],
        ENGINE._replace(service_instance_id=f"engine-of-{host}", host_name=host),
    )


def test_cells_that_emitted_nothing_count_and_those_that_say_nothing_are_named(
    clickhouse: Client, clickhouse_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def half_crashed(arm: str, place: int) -> int:
        return 1000 + place if arm == "before" or place % 4 == 2 else 0

    emitting(clickhouse, "crashed", lambda arm, place: 0 if arm == "after" else 1000 + place)
    emitting(clickhouse, "half", half_crashed)
    emitting(clickhouse, "same", lambda *_: 1000)
    emitting(clickhouse, "silent", lambda *_: None)
    compared = compare_stored(clickhouse_url, by=("host",))
    rows = {row.labels[0]: row for row in compared.groups}
    assert {host: (row.shift.pairs, row.after.mean, row.shift.hodges_lehmann) for host, row in rows.items()} == {
        "crashed": (8, 0, -200),
        "half": (8, pytest.approx(167, abs=2), pytest.approx(-100, abs=1)),
        "same": (8, pytest.approx(333, abs=1), 0),
    }
    assert rows["same"].verdict == "within noise"
    assert rows["crashed"].verdict == compared.overall.verdict == "worse"
    assert {(one.cell.labels["host"], one.reason) for one in compared.left_out} == {("silent", "nothing measured")}
    compare(Settings(clickhouse_url), by="host", fail_on=[VerdictName.BETTER])
    assert "nothing measured" in capsys.readouterr().out
    with pytest.raises(FailOnError, match="crashed is worse, half is worse, all is worse"):
        compare(Settings(clickhouse_url), by="host", fail_on=[VerdictName.WORSE])
    with pytest.raises(FailOnError, match="same is within noise"):
        compare(Settings(clickhouse_url), by="host", fail_on=[VerdictName.WITHIN_NOISE])


def test_every_form(mirrored: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "180")
    compare(Settings(mirrored))
    assert "worse" in capsys.readouterr().out
    compare(Settings(mirrored), format="markdown")
    assert capsys.readouterr().out.splitlines()[2].startswith("| node-1 | main | 4 -> 3 (0 -> 0) | 8 | -")
    compare(Settings(mirrored), format="json", by="host,concurrency")
    told = json.loads(capsys.readouterr().out)
    assert (told["overall"]["verdict"], told["groups"][0]["host"], told["groups"][0]["pairs"]) == ("worse", "node-1", 8)


def test_exit_codes(mirrored: str) -> None:
    compare(Settings(mirrored), fail_on=[VerdictName.BETTER])
    with pytest.raises(FailOnError, match="after against before: node-1 main is worse") as failed:
        compare(Settings(mirrored), fail_on=[VerdictName.WORSE])
    assert failed.value.exit_code == 6
    with pytest.raises(NothingToCompareError, match=r"no cells of arm 'nope1': there are after, before$"):
        compare(Settings(mirrored), arm="nope1,nope2")
    with pytest.raises(NothingToCompareError, match=r"no cells of arm 'befor': did you mean before\?$"):
        compare(Settings(mirrored), arm="after,befor")
    with pytest.raises(
        NothingToCompareError, match="no cells of arm 'before': no cell of this time names an arm"
    ) as empty:
        compare(Settings(mirrored), to="2026-01-01")
    assert empty.value.exit_code == 5


def test_an_aborted_cell_is_named(mirrored: str, clickhouse: Client) -> None:
    insert(clickhouse, list(cell(16, "before"))[:3])
    comparison = compare_stored(mirrored, by=("host",))
    assert [(out.cell.cell, out.reason) for out in comparison.left_out] == [("cell-16", "cut off after 9.0 s")]
    assert comparison.overall.shift.pairs == 8


def history(first: int, gpu_ms: float) -> list[GraphExecution]:
    """Twenty minutes, one P128 round every 5 s; one cell is bad."""
    return [
        round_of(n, n * 5000, "P128", (90 if n // 6 == 7 else gpu_ms) + 0.01 * (n % 7))
        for n in range(first, first + 240)
    ]


def test_a_change_with_what_else_changed(
    clickhouse: Client, clickhouse_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    old, new = (ENGINE._replace(engine_package=name) for name in ("main-9a44b2", "main-9a44c0"))
    insert(clickhouse, history(0, 28.0), old)
    insert(clickhouse, history(240, 29.5), new)
    changes(Settings(clickhouse_url), format="json")
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert (change["host"], change["graph"], change["at"][:19]) == ("node-1", "P128", "2026-11-01T00:20:00")
    assert change["shift_percent"] == pytest.approx(5.36, abs=0.05)
    assert change["differences"] == [{"label": "engine_package", "before": "main-9a44b2", "after": "main-9a44c0"}]
    changes(Settings(clickhouse_url))
    text = capsys.readouterr().out
    assert "engine_package main-9a44b2 -> main-9a44c0" in text
    assert "2026-11-01 00:20:00" in text


def moved(by: timedelta, executions: list[GraphExecution]) -> list[GraphExecution]:
    """The same at another time."""
    by_ns = by // timedelta(microseconds=1) * 1000
    return [one._replace(started_at=one.started_at + by_ns) for one in executions]


YEARS_AHEAD = ENGINE._replace(service_instance_id="engine-ahead", host_name="node-ahead")


def test_one_clock_that_is_years_ahead_neither_hides_a_change_nor_becomes_one(
    clickhouse: Client, clickhouse_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = (datetime.now(UTC) - timedelta(hours=1)).replace(second=0, microsecond=0)
    later = moved(begun - START, [*history(0, 28.0), *history(240, 29.5)])
    insert(clickhouse, later)
    insert(clickhouse, moved(datetime(2130, 1, 1, tzinfo=UTC) - START, history(0, 28.0)[:1]), YEARS_AHEAD)
    for begin in (None, "-1d"):
        changes(Settings(clickhouse_url), format="json", from_=begin)
        answer = capsys.readouterr()
        told = json.loads(answer.out)
        assert [(one["host"], one["at"][:19]) for one in told["changes"]] == [
            ("node-1", (begun + timedelta(minutes=20)).isoformat()[:19])
        ]
        assert [one["host"] for one in told["clocks_ahead"]] == ["node-ahead"]
        assert re.match(r"node-ahead: clock \d+,\d{3} d ahead; what that puts after the newest arrival", answer.err)
    # Who names an end means it.
    changes(Settings(clickhouse_url), format="json", from_="-1d", to="2130-01-02")
    answer = capsys.readouterr()
    assert [one["host"] for one in json.loads(answer.out)["changes"]] == ["node-1"]
    assert "ahead" not in answer.err


def test_of_a_fleet_whose_only_clock_is_ahead_that_is_said(
    clickhouse: Client, clickhouse_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    executions = moved(timedelta(days=36_500), [*history(0, 28.0), *history(240, 29.5)])
    insert(clickhouse, executions, YEARS_AHEAD)
    changes(Settings(clickhouse_url))
    said = capsys.readouterr().err
    assert said.startswith("no change of gpu_time in 0 series, 0 points in all\nnode-ahead: clock ")
    changes(Settings(clickhouse_url), to="2130-01-01", format="json")
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert change["host"] == "node-ahead"


def test_the_engines_own_idleness_is_no_change(
    clickhouse: Client, clickhouse_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # From the second half on, 1,456.7 ms without work lie between two requests.
    idle = [
        one._replace(
            started_at=one.started_at + max(0, number - 240) * 1_456_700_000,
            graph_after_idle=number >= 240,
            graph_queue_depth=0,
        )
        for number, one in enumerate([*history(0, 28.0), *history(240, 28.0)])
    ]
    insert(clickhouse, idle)
    for metric in ("gpu_time", "tokens_per_s", "handoff"):
        changes(Settings(clickhouse_url), metric=metric, format="json")  # type: ignore[arg-type]
        answer = capsys.readouterr()
        assert json.loads(answer.out)["changes"] == []
        assert f"no change of {metric} in" in answer.err


def test_no_executions_are_no_change(clickhouse_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    changes(Settings(clickhouse_url))
    assert capsys.readouterr().err == "no change of gpu_time in 0 series, 0 points in all\n"

"""What speculation would have given where the batch changes: at costs of like batches, not of any."""

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import GraphExecution
from tests.fixtures.asking import ask
from tests.fixtures.query_rows import believing, insert, round_of

GPU_MS = {"decode": 13.0, "P128": 28.0}
PER_LANE = {"decode": 1.0, "P128": 2.0625}
GAIN_PERCENT = 100 * (PER_LANE["P128"] / GPU_MS["P128"] * GPU_MS["decode"] / PER_LANE["decode"] - 1)
"""Of P128 beyond plain decode, with any batch: 4 % less."""


def stretch(at: int, graph: str, lanes: int, count: int, slower: float) -> list[GraphExecution]:
    """So many rounds; each graph promises its tokens a lane, and is charged what it costs."""
    takes = {name: ms * slower for name, ms in GPU_MS.items()}
    believed = believing({name: (ms, PER_LANE[name] * lanes) for name, ms in takes.items()})
    return [
        round_of(n, 40.0 * n, graph, takes[graph], batch_lanes=lanes, cell_id="bench", **believed)
        for n in range(at, at + count)
    ]


def gain_of(client: Client, *, larger: float, plain_before: int = 50, again: int = 10) -> float | None:
    """Of a cell with 8 and then 24 lanes: with 24 graphs take so many times as long, and P128 is run again so often."""
    rounds = stretch(0, "P128", 8, 200, 1.0)
    rounds += stretch(len(rounds), "decode", 8, plain_before, 1.0)
    rounds += stretch(len(rounds), "decode", 24, 500, larger)
    rounds += stretch(len(rounds), "P128", 24, again, larger)
    insert(client, rounds)
    (row,) = ask(client, "stuck_plain")
    gain: float | None = row["gain_percent"]
    return gain


def test_a_larger_batch_makes_no_gain(clickhouse: Client) -> None:
    assert gain_of(clickhouse, larger=1.2) == pytest.approx(GAIN_PERCENT)


def test_where_a_graph_was_not_run_with_the_batch_others_tell_nothing(clickhouse: Client) -> None:
    assert gain_of(clickhouse, larger=1.2, again=0) == pytest.approx(GAIN_PERCENT), "of the rounds before"


def test_a_gain_is_not_told_of_a_cost_that_was_never_measured(clickhouse: Client) -> None:
    assert gain_of(clickhouse, larger=1.2, again=0, plain_before=0) is None


def test_a_batch_that_does_nothing_changes_nothing(clickhouse: Client) -> None:
    assert gain_of(clickhouse, larger=1.0, again=0) == pytest.approx(GAIN_PERCENT)

"""GraphRegression on engines whose batch changes: a larger batch is no slower graph, and hides none."""

import re

import pytest
from clickhouse_connect.driver.client import Client

from tests.fixtures.alert_rows import CELL_S, Fleet, Watch


@pytest.fixture
def fleet(clickhouse: Client, clickhouse_url: str) -> Fleet:
    return Fleet(clickhouse, clickhouse_url)


def after(windows: int) -> float:
    """Two seconds after so many windows."""
    return windows * CELL_S + 2.0


def arrive(fleet: Fleet, first: int, count: int, gpu_ms: float, lanes: int) -> None:
    """Windows of 29 rounds of P128."""
    for number in range(first, first + count):
        fleet.arrive(fleet.rounds(number * CELL_S, ["P128"] * 29, gpu_ms=gpu_ms, batch_lanes=lanes))


def test_a_larger_batch_is_no_regression(fleet: Fleet) -> None:
    watch = Watch(fleet, "GraphRegression")
    arrive(fleet, 0, 20, 28.0, 8)
    arrive(fleet, 20, 11, 31.0, 24)
    assert watch.states(after(31)) == ["inactive"], "whether it is the batch cannot be told"
    arrive(fleet, 31, 11, 28.0, 8)
    arrive(fleet, 42, 11, 31.1, 24)
    assert watch.states(after(53)) == ["inactive"], "it never was faster with as many"


@pytest.mark.parametrize("small_ms", [28.0, 31.0], ids=["goes with the batch", "padded"])
def test_a_regression_is_found_whatever_the_batch_does(fleet: Fleet, small_ms: float) -> None:
    watch = Watch(fleet, "GraphRegression")
    for first in (0, 20):
        arrive(fleet, first, 10, small_ms, 8)
        arrive(fleet, first + 10, 10, 31.0, 24)
    arrive(fleet, 40, 11, 34.0, 24)
    assert watch.states(after(51), after(53), after(55)) == ["pending", "pending", "firing"]
    # 34 / 31, and sketches are within 1 %.
    assert re.search(
        r"P128 on node-1 \(engine-1\) runs (9|10|11)% slower on the GPU", watch.entry.annotations["summary"]
    )

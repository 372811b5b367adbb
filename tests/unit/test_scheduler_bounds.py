"""Rounds take little time and leave nothing behind, whichever the cost model. `make bench` does ten million of them."""

from functools import partial

import pytest

from engine_hooks.cost_model.drained_share import DrainedShare
from engine_hooks.cost_model.model import Measurement
from engine_hooks.cost_model.registry import COST_MODELS
from tests.benchmarks.bench_scheduler import P99_LIMIT_NS, Rounds, growth, percentiles_ns, rounds_of

ROUNDS = 20_000
BLOCKS_MAX = 1_000
"""What else runs in this process may allocate; a leak of one block a round would be twenty times as much."""


class Hoarder(DrainedShare):
    """Keeps every measurement."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Measurement] = []

    def record(self, measurement: Measurement) -> None:
        super().record(measurement)
        self.kept.append(measurement)


@pytest.mark.parametrize("model", COST_MODELS)
def test_rounds_leave_nothing_behind(model: str) -> None:
    assert growth(rounds_of(model), ROUNDS).blocks < BLOCKS_MAX


def test_a_model_that_keeps_everything_is_found_out() -> None:
    assert growth(Rounds(Hoarder()), ROUNDS).blocks > ROUNDS


@pytest.mark.parametrize("model", COST_MODELS)
def test_a_round_is_quick(model: str) -> None:
    _, p99_ns = percentiles_ns(partial(rounds_of, model), 2_000, 4)
    assert p99_ns < P99_LIMIT_NS

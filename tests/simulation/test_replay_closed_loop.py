"""The closed loop against a live engine of the same seed: stuck cells of many kinds, and the labelled ones.

A cell that sat in plain decode shows few speculative rounds, so that what drafts are worth is known to a per
cent or two and no better: one cell may be off by more than 1 %, and its replay says so. Over cells it must not be.
"""

import json
import statistics
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from engine_hooks.simulator.parameters import Scenario
from queries.replay.closed_loop import closed_loop
from tests.fixtures.replayed_cells import cell_of, labelled, live
from tests.fixtures.stuck_cells import SCENARIOS, Outcome, outcome, stuck_cells, stuck_cells_with_history

MODEL = "drained_share"
RUNS = 5
WITH_MUCH_TO_LEARN_FROM = SCENARIOS[:4]


def replayed(scenarios: tuple[Scenario, ...], each: int, *, history: bool) -> Iterator[Outcome]:
    cells = stuck_cells_with_history if history else stuck_cells
    for scenario in scenarios:
        for seed, cell, live_tokens_per_s in islice(cells(scenario, range(50_000, 50_400), MODEL), each):
            yield outcome(scenario.name, seed, cell, live_tokens_per_s, model=MODEL, runs=RUNS)


def shares(found: list[Outcome]) -> tuple[float, float, float]:
    """Mean error, share within 1 %, share within the stated error."""
    return (
        statistics.fmean(one.off_percent for one in found),
        sum(abs(one.off_percent) <= 1 for one in found) / len(found),
        sum(abs(one.off_percent) <= one.error_percent for one in found) / len(found),
    )


def test_stuck_cells_come_to_what_the_live_engine_does() -> None:
    found = list(replayed(SCENARIOS, 2, history=False))
    mean, within_1_percent, within_error = shares(found)
    assert abs(mean) < 0.6, found
    assert within_1_percent >= 0.6, found
    assert within_error >= 0.85, found
    assert max(abs(one.calibration_percent) for one in found) < 1, found


def test_with_a_history_to_learn_from_they_come_within_1_percent() -> None:
    found = list(replayed(WITH_MUCH_TO_LEARN_FROM, 1, history=True))
    mean, within_1_percent, within_error = shares(found)
    assert abs(mean) < 0.5, found
    assert within_1_percent >= 0.75, found
    assert within_error >= 0.75, found


@pytest.fixture(scope="module")
def truth(cases: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads((cases / "cells" / "truth.json").read_text())["cells"] if cell["stuck"]]


def test_the_labelled_stuck_cells(cases: Path, truth: list[dict[str, Any]]) -> None:
    off, within_error = {}, {}
    for cell in truth:
        loop = closed_loop(labelled(cases / "cells" / cell["file"]), MODEL, RUNS)
        off[cell["id"]] = 100 * (loop.tokens_per_s / cell["tokens_per_s_same_seed"][MODEL] - 1)
        # Their tokens/s count 30 s, the rows' the time from the first submission to the last completion.
        within_error[cell["id"]] = abs(off[cell["id"]]) <= loop.error_percent + 0.2
        assert abs(loop.calibration_percent) < 0.5, cell["id"]
    assert all(within_error.values()), off
    assert abs(statistics.median(off.values())) < 0.5, off
    # r014 shows 78 speculative rounds and r016 215: luck of 2.3 and 1.6 %, stated as such.
    assert {name for name, percent in off.items() if abs(percent) > 1} <= {"r014", "r016"}, off


def test_a_model_that_changes_nothing_is_worth_nothing() -> None:
    loop = closed_loop(cell_of(live(Scenario("quiet"), "exposed_mean", seed=1)), MODEL, RUNS)
    low, high = loop.gain_interval_percent
    assert low < 0 < high
    assert loop.error_percent < 1.5
    assert loop.recorded_model_percent == pytest.approx(loop.calibration_percent, abs=0.3)

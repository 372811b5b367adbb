"""The published experiment comes out: stuck cells and means, over replicates. The distribution is printed (`-s`)."""

import statistics
from functools import cache

import pytest

from engine_hooks.simulator.experiment import PACKAGES
from engine_hooks.simulator.experiment_results import LANES_PACKAGES, ExperimentResults, run_experiment
from engine_hooks.simulator.intervals import Verdict
from engine_hooks.simulator.many_cells import usable_cores

REPLICATES = 10
MODELS = ("exposed_mean", "drained_share", "idle_gap")
REFERENCE = {
    "exposed_mean": {"frank1 main": 2378, "frank1 B": 2440, "frank2 main": 2379, "frank2 B": 2507, None: 2426},
    "drained_share": {"frank1 main": 2440, "frank1 B": 2490, "frank2 main": 2449, "frank2 B": 2512, None: 2473},
}
"""Means of an independent reference simulation, tokens/s; `None` is all 40."""


@cache
def results() -> ExperimentResults:
    """One run of the experiment for all tests of this process."""
    return run_experiment(MODELS, REPLICATES, 0, usable_cores(), lambda: None)


def test_stuck_cells_under_exposed_mean() -> None:
    stuck = results().group("exposed_mean").stuck
    print(f"stuck of 40 under exposed_mean, by replicate: {stuck}")  # noqa: T201
    # The reference's 15.0, of which 12 to 18 were its extremes in ten replicates. One replicate has a
    # standard deviation of 2.5 (binomial, by package), so the mean is held to 12 to 18 and each to four of them.
    assert 12 <= statistics.fmean(stuck) <= 18
    assert all(5 <= count <= 25 for count in stuck)


@pytest.mark.parametrize("model", ["drained_share", "idle_gap"])
def test_stuck_cells_under_the_corrected_models(model: str) -> None:
    stuck = results().group(model).stuck
    print(f"stuck of 40 under {model}, by replicate: {stuck}")  # noqa: T201
    assert max(stuck) <= 1


@pytest.mark.parametrize("model", ["exposed_mean", "drained_share"])
def test_means_of_the_reference(model: str) -> None:
    for package in (*PACKAGES, None):
        expected = REFERENCE[model][package.name if package else None]
        assert results().group(model, package).tokens_per_second == pytest.approx(expected, rel=0.015), package


@pytest.mark.parametrize("model", ["drained_share", "idle_gap"])
def test_the_corrected_models_are_better_where_hosts_stumble(model: str) -> None:
    run = results()
    assert run.comparison("exposed_mean", model).verdict == Verdict.BETTER
    assert run.comparison("exposed_mean", model, PACKAGES[2]).verdict == Verdict.BETTER
    assert run.comparison("exposed_mean", model, PACKAGES[3]).verdict != Verdict.WORSE


@pytest.mark.parametrize("model", ["drained_share", "idle_gap"])
def test_no_regression_at_other_numbers_of_lanes(model: str) -> None:
    for package in LANES_PACKAGES.values():
        comparison = results().comparison("exposed_mean", model, package)
        assert comparison.verdict != Verdict.WORSE, package.name
        assert comparison.shift_percent.mean > -0.5, package.name

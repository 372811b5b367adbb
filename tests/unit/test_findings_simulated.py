"""The diagnosis on simulated cells of every kind; `make bench-findings` does the same on 2,000."""

import pytest

from queries.findings.diagnosis import diagnose
from queries.findings.findings import Kind
from tests.benchmarks.bench_findings import missed, outcome, scores
from tests.fixtures.simulated_causes import CAUSES
from tests.fixtures.simulated_cells import simulated

SEEDS = (1, 2)
"""Fixed, so that a failure is one of the code and not of luck."""
MORE_INFLATED = range(3, 9)


def test_two_cells_of_every_kind() -> None:
    tasks = [(kind, seed) for kind in CAUSES for seed in SEEDS]
    tasks += [(Kind.ESTIMATE_INFLATION, seed) for seed in MORE_INFLATED]
    results = [outcome(task) for task in tasks]
    assert not missed(scores(results)), [one for one in results if one.true != one.found]
    assert not any(one.called_stuck_by_fault_though_right for one in results)
    assert {kind for one in results for kind in one.true} == set(CAUSES) - {Kind.HEALTHY}


@pytest.mark.parametrize("kind", [Kind.HOST_BOUND, Kind.PLAIN_RIGHT])
def test_equal_records_give_equal_findings(kind: Kind) -> None:
    first, again = simulated(kind, 1), simulated(kind, 1)
    assert first.record == again.record
    assert diagnose(first.record) == diagnose(again.record)

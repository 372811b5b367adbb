"""Which cells are compared, and what becomes of the others."""

from datetime import timedelta

import pytest

from queries.compare.cells import Cell, labels_named
from queries.compare.comparison import METRICS, Metric, compared
from queries.compare.errors import NothingToCompareError
from queries.compare.pairing import Matched, matched
from queries.errors import CallError
from tests.fixtures.arm_tables import START, cell_at

ARMS = ("before", "after")


def match(cells: list[Cell]) -> Matched:
    return matched(cells, ARMS, ("host", "package"), METRICS[Metric.TOKENS_PER_S].measure)


def ordered(arms: str, skip: tuple[int, ...] = (), **fields: object) -> list[Cell]:
    """Cells of the arms B(efore) and A(fter), in this order."""
    names = {"B": "before", "A": "after"}
    return [cell_at(names[arm], place, 100.0, **fields) for place, arm in enumerate(arms) if place not in skip]


def places(found: Matched) -> list[tuple[int | None, int | None]]:
    return [(pair.before.position, pair.after.position) for pair in found.pairs]


@pytest.mark.parametrize(
    ("arms", "skip", "pairs", "alone"),
    [
        ("BAABBA", (), [(0, 1), (3, 2), (4, 5)], []),
        ("BABABA", (), [(0, 1), (2, 3), (4, 5)], []),
        # Where 3 is missing, 2 is left alone: its partner is not the cell that belongs to 5.
        ("BAABBA", (3,), [(0, 1), (4, 5)], [2]),
        ("BAABBA", (0,), [(3, 2), (4, 5)], [1]),
        ("BBB", (), [], [0, 1, 2]),
        ("BAA", (), [(0, 1)], [2]),
    ],
)
def test_neighbours_are_paired(
    arms: str, skip: tuple[int, ...], pairs: list[tuple[int, int]], alone: list[int]
) -> None:
    found = match(ordered(arms, skip))
    assert places(found) == pairs
    assert [cell.position for cell, _ in found.left_out] == alone
    assert {reason for _, reason in found.left_out} <= {"no neighbour of the other arm"}


def test_cells_of_different_conditions_are_no_pair() -> None:
    for label in ("host", "package", "recipe", "concurrency"):
        cells = [*ordered("BA"), *ordered("BA", **{label: "16"})]
        crossed = [*ordered("BA"), cell_at("before", 2, 100.0), cell_at("after", 3, 100.0, **{label: "16"})]
        assert len(match(cells).pairs) == 2
        assert len(match(crossed).pairs) == 1


def test_what_tells_the_arms_apart_does_not_part_them() -> None:
    cells = [cell_at("before", 0, 100.0, package="main"), cell_at("after", 1, 100.0, package="main-fix")]
    assert compared(cells, by=("host",)).apart == ("package",)
    with pytest.raises(NothingToCompareError, match="no package in common: leave package out of --by"):
        compared(cells, by=("host", "package"))


def test_a_second_run_of_the_benchmark_is_a_run_of_its_own() -> None:
    day = timedelta(days=1)
    later = [cell._replace(started_at=cell.started_at + day) for cell in ordered("BA")]
    found = match([*later, *ordered("BA")])
    assert [(pair.before.started_at, pair.after.started_at - pair.before.started_at) for pair in found.pairs] == [
        (START, timedelta(seconds=30)),
        (START + day, timedelta(seconds=30)),
    ]


def test_without_positions_the_order_is_that_of_time() -> None:
    cells = [
        cell_at(arm, None, 100.0, started_at=START + timedelta(minutes=minute), cell=str(minute))
        for minute, arm in enumerate(("before", "after", "after", "before"))
    ]
    found = match(cells[::-1])
    assert [(pair.before.cell, pair.after.cell) for pair in found.pairs] == [("0", "1"), ("3", "2")]
    assert any("no position" in note for note in compared(cells).notes)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"executions_lost": 2}, "lost 2 executions, 1,000 stored"),
        ({"elapsed_s": 9.0}, "cut off after 9.0 s"),
        ({"tokens_per_s": None}, "nothing measured"),
        ({"position": None}, "no position in the benchmark's order"),
    ],
)
def test_a_cell_that_cannot_be_trusted_is_named(fields: dict[str, object], reason: str) -> None:
    first, *others = ordered("BAABBAAB")
    found = match([first._replace(**fields), *others])  # type: ignore[arg-type]
    assert [(out.cell.cell, out.reason) for out in found.left_out if out.cell.arm == "before"] == [(first.cell, reason)]
    assert len(found.pairs) == 3
    assert len(found.left_out) + 2 * len(found.pairs) == 8


def test_one_lost_execution_of_a_thousand_is_kept() -> None:
    cells = [cell._replace(executions_lost=1) for cell in ordered("BA")]
    assert len(match(cells).pairs) == 1


def test_neighbours_of_one_arm() -> None:
    mirrored = match(ordered("BAABBA")).same_arm
    assert [(left.position, right.position) for left, right in mirrored] == [(1, 2), (3, 4)]
    alternating = match(ordered("BABA")).same_arm
    assert {(left.position, right.position) for left, right in alternating} == {(1, 3), (0, 2)}


def test_labels() -> None:
    assert labels_named("host, package,host") == ("host", "package")
    for wrong in ("gpu", ""):
        with pytest.raises(CallError, match="cells have host"):
            labels_named(wrong)

"""The comparison of arms whose cells lie in ClickHouse."""

from collections.abc import Sequence
from typing import Final

from queries.compare.absent import check_arms
from queries.compare.cells import Cell, cells_of
from queries.compare.comparison import SMALLEST_SHIFT, Comparison, Metric, compared
from queries.errors import CallError
from queries.runner import run

CELLS_MAX: Final = 10_000
"""Of one arm."""


def compare_stored(
    url: str,
    arms: tuple[str, str] = ("before", "after"),
    *,
    by: Sequence[str] = ("host", "package"),
    metric: Metric = Metric.TOKENS_PER_S,
    smallest_shift: float = SMALLEST_SHIFT,
    from_: str | None = None,
    to: str | None = None,
) -> Comparison:
    """Compare two arms by the cells of a time range; instants as the catalogue takes them.

    Raises:
        QueriesError: as `queries.runner.run` and `queries.compare.comparison.compared`.
    """
    cells = [cell for arm in dict.fromkeys(arms) for cell in cells_of_arm(url, arm, from_, to)]
    found = {cell.arm for cell in cells}
    if absent := set(arms) - found:
        check_arms(arms, found | arms_stored(url, from_, to) - absent)
    return compared(cells, arms, by, metric, smallest_shift)


def arms_stored(url: str, from_: str | None, to: str | None) -> set[str]:
    """The arms that any engine took part in.

    Raises:
        QueriesError: as `queries.runner.run`.
    """
    engines = run("engines", url, "rows", last_s=0, **{"from": from_, "to": to})
    return {arm for engine in engines for arm in engine["arms"]}


def cells_of_arm(url: str, arm: str, from_: str | None, to: str | None) -> list[Cell]:
    """Every cell of an arm.

    Raises:
        CallError: there are more than `CELLS_MAX`, or the arm has no name.
        QueriesError: as `queries.runner.run`.
    """
    if not arm:
        raise CallError("--arm takes two names: --arm before,after")
    rows = run("live_cells", url, "rows", arm=arm, limit=CELLS_MAX + 1, **{"from": from_, "to": to})
    if len(rows) > CELLS_MAX:
        raise CallError(f"arm {arm} has more than {CELLS_MAX:,} cells: narrow the time by --from and --to")
    return cells_of(rows)

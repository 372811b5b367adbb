"""Which arms there are to compare, and which two to begin with."""

from collections import Counter
from itertools import combinations
from typing import Final, TypeAlias

import pandas as pd

from dashboards.rows import rows_of

USUAL_ARMS: Final = ("before", "after")
USUAL_ROWS: Final = ("host", "package")
ARMS_MAX: Final = 12
"""Arms whose pairs are counted: those of the most cells."""

Stratum: TypeAlias = tuple[str, str, str]
"""Host, package and recipe."""


def arms_stored(engines: pd.DataFrame) -> list[str]:
    """Arms that any engine took part in, the one that was recorded first in front.

    Args:
        engines: Rows of the query `engines`.
    """
    if engines.empty:
        return []
    rows = engines[["arms", "first_seen"]].explode("arms")
    began = rows[rows.arms.notna() & (rows.arms != "")].groupby("arms").first_seen.min().reset_index()
    return [str(arm) for arm in began.sort_values(["first_seen", "arms"]).arms]


def usual_rows(engines: pd.DataFrame, arms: tuple[str, str]) -> tuple[str, ...]:
    """What makes a row of the table to begin with: host and package; not the package where that is what the arms differ in.

    A row for each package would compare nothing then. Hosts stay: what differs between hosts is left out by whoever means to.

    Args:
        engines: Rows of the query `engines`.
        arms: The two to compare.
    """
    if engines.empty:
        return USUAL_ROWS
    rows = engines[["arms", "engine_package"]].explode("arms")
    first, second = (set(rows.engine_package[rows.arms == arm]) for arm in arms)
    are_apart = bool(first and second) and first.isdisjoint(second)
    return tuple(label for label in USUAL_ROWS if label != "package" or not are_apart)


def usual_arms(stored: list[str]) -> tuple[str, str]:
    """The two arms to begin with: `before` and `after`, else the first that was recorded and the newest."""
    if set(USUAL_ARMS) <= set(stored) or len(stored) < len(USUAL_ARMS):
        return USUAL_ARMS
    return stored[0], stored[-1]


def comparable_arms(engines: pd.DataFrame) -> tuple[str, str] | None:
    """The two arms of which the most cells find one of the other arm, as far as the engines tell; None where none does.

    `before` and `after` are meant for each other, and go before those that have more. The arm that was recorded first is
    the one compared with. Which arm of an engine its cells are of, its row does not tell: each arm gets as many.

    Args:
        engines: Rows of the query `engines`.
    """
    strata = strata_of(engines)
    most = sorted(strata, key=lambda arm: -sum(strata[arm].values()))[:ARMS_MAX]
    kept = [arm for arm in arms_stored(engines) if arm in {*most, *USUAL_ARMS}]
    if set(USUAL_ARMS) <= set(kept) and cells_paired(strata, USUAL_ARMS):
        return USUAL_ARMS
    pairs = {pair: cells_paired(strata, pair) for pair in combinations(kept, 2)}
    best = max(pairs, key=lambda pair: pairs[pair], default=None)
    return best if best and pairs[best] else None


def strata_of(engines: pd.DataFrame) -> dict[str, Counter[Stratum]]:
    """The cells of each arm, by what both cells of a pair share."""
    strata: dict[str, Counter[Stratum]] = {}
    for row in rows_of(engines):
        arms = [arm for arm in row.arms if arm]
        for arm in arms:
            alike = (row.host_name, row.engine_package, row.engine_recipe)
            strata.setdefault(arm, Counter())[alike] += row.cells / len(arms)
    return strata


def cells_paired(strata: dict[str, Counter[Stratum]], arms: tuple[str, str]) -> float:
    """How many cells of one arm find one of the other on their host, alike in package and recipe, save where these are
    what the arms differ in."""
    first, second = (strata[arm] for arm in arms)
    shared = [not {one[at] for one in first}.isdisjoint(one[at] for one in second) for at in range(3)]
    if not shared[0]:
        return 0
    both = [coarser(cells, shared) for cells in (first, second)]
    return (both[0] & both[1]).total()


def coarser(cells: Counter[Stratum], shared: list[bool]) -> Counter[tuple[str, ...]]:
    """The cells, by those labels alone of which the arms share a value."""
    summed: Counter[tuple[str, ...]] = Counter()
    for stratum, number in cells.items():
        summed[tuple(label for label, is_shared in zip(stratum, shared, strict=True) if is_shared)] += number
    return summed

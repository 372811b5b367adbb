"""A comparison for the eye: every cell as a dot, so that nobody has to trust a mean."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from engine_hooks.commands.terminal import shortened
from queries.compare.comparison import ArmCells, Comparison, Group, Verdict
from queries.compare.wording import (
    band_text,
    figure,
    how_computed,
    interval_text,
    name_of,
    remarks,
    signed,
    stuck,
    verdict_text,
)

STRIP_WIDTH: Final = 32
DOTS: Final = " ·:⁖⁘⁙"
"""No cell in a place of the strip, one, two … five and more."""
COLOURS: Final = {
    Verdict.BETTER: "bold green",
    Verdict.WORSE: "bold red",
    Verdict.WITHIN_NOISE: "cyan",
    Verdict.UNDETERMINED: "yellow",
}


def rendered(comparison: Comparison) -> RenderableType:
    """The table, its remarks and how it was computed."""
    before, after = comparison.arms
    table = Table()
    table.add_column(" ".join(comparison.by), overflow="fold")
    table.add_column("arm", overflow="fold")
    table.add_column(f"{comparison.metric}\nmean", justify="right")
    table.add_column("stuck\ncells", justify="right")
    table.add_column("cells, from least to most\n(red: stuck in plain decode)", no_wrap=True)
    table.add_column("pairs", justify="right")
    table.add_column(f"shift {comparison.unit}\n95 % interval", justify="right")
    table.add_column("mean %\nbootstrap" if comparison.unit == "%" else "mean points\nbootstrap", justify="right")
    table.add_column("A/A\nband", justify="right")
    table.add_column("verdict")
    for group in comparison.rows:
        add_rows(table, group, comparison, (before, after))
    lines = [Text(shortened(f"- {remark}")) for remark in remarks(comparison)]
    return Stack(table, *lines, Text(how_computed(comparison), style="dim"))


def add_rows(table: Table, group: Group, comparison: Comparison, arms: tuple[str, str]) -> None:
    """Two lines, one for each arm."""
    shift, values = group.shift, (*group.before.values, *group.after.values)
    first, second = (
        (
            Text(shortened(arm)),
            figure(cells.mean, comparison.metric),
            str(stuck(cells)),
            strip(cells, min(values), max(values)),
        )
        for arm, cells in zip(arms, (group.before, group.after), strict=True)
    )
    verdict = Text(verdict_text(group).replace(", ", "\n"), style=COLOURS[group.verdict])
    p_value = f"p {group.p_value_adjusted:.3g}"
    table.add_row(
        Text(shortened(name_of(group))),
        *first,
        str(shift.pairs),
        signed(shift.hodges_lehmann),
        signed(shift.mean),
        band_text(group),
        verdict,
    )
    table.add_row(
        "", *second, "", interval_text(shift.hodges_lehmann_interval), interval_text(shift.mean_interval), "", p_value
    )
    table.add_section()


def strip(cells: ArmCells, low: float, high: float) -> Text:
    """The cells of an arm along one line; both arms of a row share the scale."""
    counts, caught = [0] * STRIP_WIDTH, [False] * STRIP_WIDTH
    for value, is_stuck in zip(cells.values, cells.stuck, strict=True):
        place = place_in(value, low, high)
        counts[place] += 1
        caught[place] |= is_stuck
    return Text.assemble(*dots(counts, caught))


def place_in(value: float, low: float, high: float) -> int:
    """Where a value stands in the strip."""
    return min(STRIP_WIDTH - 1, int(STRIP_WIDTH * (value - low) / (high - low))) if high > low else STRIP_WIDTH // 2


def dots(counts: Sequence[int], caught: Sequence[bool]) -> list[tuple[str, str]]:
    """Character and style of each place."""
    return [
        (DOTS[min(count, len(DOTS) - 1)], "bold red" if is_stuck else "")
        for count, is_stuck in zip(counts, caught, strict=True)
    ]

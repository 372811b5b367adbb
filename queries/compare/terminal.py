"""A comparison for the eye: every cell as a dot, so that nobody has to trust a mean."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from engine_hooks.commands.counting import counted
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
from queries.terminal import Fitting

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
    """The table, its remarks and how it was computed. Where a terminal is too narrow for the table, its rows as blocks."""
    lines = [Text(shortened(f"- {remark}")) for remark in remarks(comparison)]
    fitting = Fitting(table_of(comparison), blocks(comparison))
    return Stack(fitting, *lines, Text(how_computed(comparison), style="dim"))


def blocks(comparison: Comparison) -> RenderableType:
    """Each row of the table as a few short lines."""
    by = f"By {', '.join(comparison.by)}. " if comparison.by else ""
    legend = (
        f"{by}Of each arm the mean {comparison.metric}, its stuck cells, and all of its cells from least to most (red:"
        " stuck in plain decode). Of shift and mean, intervals of 95 %."
    )
    return Stack(Text(legend, style="dim"), *(block(group, comparison) for group in comparison.rows), Text())


def block(group: Group, comparison: Comparison) -> RenderableType:
    """One row of the table: its verdict, its arms, its figures."""
    shift, unit, values = group.shift, comparison.unit, (*group.before.values, *group.after.values)
    arms, figures = folding_grid(4), folding_grid(4)
    for arm, cells in zip(comparison.arms, (group.before, group.after), strict=True):
        mean = figure(cells.mean, comparison.metric)
        arms.add_row(Text(shortened(arm)), mean, f"{stuck(cells)} stuck", strip(cells, min(values), max(values)))
    arms.columns[-1].no_wrap = True
    p_value = f"p {group.p_value_adjusted:.3g}"
    about = f"{counted(shift.pairs, 'pair')}, A/A band {band_text(group)}"
    intervals = interval_text(shift.hodges_lehmann_interval), interval_text(shift.mean_interval)
    figures.add_row(f"shift, {unit}", signed(shift.hodges_lehmann), intervals[0], p_value)
    figures.add_row(f"mean, {unit}", signed(shift.mean), intervals[1], about)
    verdict = Text.assemble(shortened(name_of(group)), ": ", (verdict_text(group), COLOURS[group.verdict]))
    return Stack(Text(), verdict, *(Padding(grid, (0, 0, 0, 2), expand=False) for grid in (arms, figures)))


def folding_grid(columns: int) -> Table:
    """A grid in which nothing is cut."""
    grid = Table.grid(padding=(0, 2))
    for number in range(columns):
        grid.add_column(overflow="fold", justify="right" if number == 1 else "left")
    return grid


def table_of(comparison: Comparison) -> Table:
    """Two lines for each row."""
    before, after = comparison.arms
    table = Table()
    table.add_column("\n".join(comparison.by), overflow="fold")
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
    return table


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
    name = "\n".join(label or "-" for label in group.labels) or name_of(group)
    table.add_row(
        Text(shortened(name)),
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

"""A comparison in words and figures, as every form of it shows them."""

from typing import Final

from engine_hooks.commands.counting import counted
from queries.compare.comparison import ArmCells, Comparison, Group, Metric, Verdict
from queries.compare.shifts import CONFIDENCE, ERROR_RATE, RESAMPLES, Interval

ALL_GROUPS = "all"


METRIC_WORDS: Final = {Metric.TOKENS_PER_S: "tokens/s", Metric.PLAIN_FRACTION: "plain fraction"}


def name_of(group: Group) -> str:
    """A row's first column."""
    return " ".join(label or "-" for label in group.labels) or ALL_GROUPS


def figure(value: float, metric: Metric) -> str:
    """A value of the metric."""
    return f"{value:,.0f}" if metric is Metric.TOKENS_PER_S else f"{value:.3f}"


def change(group: Group, metric: Metric) -> str:
    """Means and stuck cells, before and after: `2,445 -> 2,432 (4 -> 0)`."""
    before, after = (figure(arm.mean, metric) for arm in (group.before, group.after))
    return f"{before} -> {after} ({stuck(group.before)} -> {stuck(group.after)})"


def stuck(arm: ArmCells) -> int:
    """How many cells of an arm are stuck in plain decode."""
    return sum(arm.stuck)


def signed(value: float) -> str:
    """A shift."""
    return f"{value:+.2f}".replace("-0.00", "+0.00")


def interval_text(interval: Interval | None) -> str:
    """An interval, or that there is none."""
    return f"{signed(interval.low)} to {signed(interval.high)}" if interval else "none"


def band_text(group: Group) -> str:
    """The band of one arm against itself."""
    return f"±{group.same_arm_band:.2f}" if group.same_arm_band is not None else "unknown"


def verdict_text(group: Group) -> str:
    """The verdict, and what would settle it."""
    if group.more_cells is None or group.verdict is not Verdict.UNDETERMINED:
        return str(group.verdict)
    return f"{group.verdict}, about {group.more_cells.for_smallest_shift:,} more cells"


def more_cells_line(comparison: Comparison) -> str | None:
    """What it would take to decide the last row, if it is undecided."""
    row = comparison.rows[-1]
    if row.more_cells is None:
        return None
    smallest = f"{comparison.smallest_shift:g} {comparison.unit}"
    line = (
        f"To find a shift of {smallest} four times out of five: about {row.more_cells.for_smallest_shift:,} more cells"
    )
    if row.more_cells.for_shift_seen is not None and abs(row.shift.hodges_lehmann) > comparison.smallest_shift:
        line += (
            f"; of {abs(row.shift.hodges_lehmann):.2f} {comparison.unit}, as seen: {row.more_cells.for_shift_seen:,}"
        )
    return line + f" ({counted(row.shift.pairs, 'pair')} so far)."


def how_computed(comparison: Comparison) -> str:
    """The foot line: how the figures came about."""
    unit = "% of the pair's mean" if comparison.unit == "%" else "percentage points"
    rows = len(comparison.rows)
    correction = f", Holm-adjusted over {rows} rows" if rows > 1 else ""
    return (
        f"{METRIC_WORDS[comparison.metric]} over elapsed time, every cell of a pair counted; cells paired in mirrored order."
        f" Shift: Hodges-Lehmann, in {unit}, with its {100 * CONFIDENCE:.0f} % interval (signed-rank test inverted);"
        f" mean: percentile bootstrap over pairs ({RESAMPLES:,} draws)."
        f" Better or worse: signed-rank test at {100 * ERROR_RATE:.0f} %{correction}, and the mean's interval on the same side of zero."
        f" Within noise: both intervals inside ±{comparison.smallest_shift:g} {comparison.unit} and inside the A/A band,"
        " in which 95 % of neighbouring cells of one arm lie."
    )


def remarks(comparison: Comparison) -> list[str]:
    """Everything a reader must know besides the figures: notes, what was left out, what differs between the arms."""
    lines = list(comparison.notes)
    if comparison.apart:
        lines.append(f"the arms share no value of: {', '.join(comparison.apart)}")
    reasons: dict[str, list[str]] = {}
    for cell, reason in comparison.left_out:
        reasons.setdefault(reason, []).append(f"{cell.name} ({cell.arm})")
    lines += [f"left out, {reason}: {named(cells)}" for reason, cells in reasons.items()]
    if further := more_cells_line(comparison):
        lines.append(further)
    return lines


def named(cells: list[str], shown: int = 5) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(cells) - shown} more" if len(cells) > shown else ""
    return ", ".join(cells[:shown]) + more

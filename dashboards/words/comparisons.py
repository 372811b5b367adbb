"""A comparison of arms in words and as a table: pure functions, so that tests need no browser."""

from typing import Final

from dashboards.words.markdown import short
from dashboards.words.texts import escaped, two_ends
from engine_hooks.commands.counting import counted
from queries.compare.comparison import Comparison, Group, Verdict
from queries.compare.wording import ALL_GROUPS, METRIC_WORDS, change, interval_text, signed, stuck, verdict_text

SIGNS: Final = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.WITHIN_NOISE: "≈",
    Verdict.UNDETERMINED: "?",
}
"""Beside the word, so that a verdict is seen at a glance and never by colour alone."""

PLAIN_WORDS: Final = {
    Verdict.BETTER: "is better than",
    Verdict.WORSE: "is worse than",
    Verdict.WITHIN_NOISE: "is within noise of",
    Verdict.UNDETERMINED: "cannot be told from",
}


def comparison_sentence(comparison: Comparison) -> str:
    """The verdict on all cells together."""
    before, after = (escaped(two_ends(arm)) for arm in comparison.arms)
    row = comparison.overall
    interval = row.shift.hodges_lehmann_interval
    said_interval = f" (95 % interval {interval_text(interval)})" if interval else ""
    groups = f" in {len(comparison.groups)} groups" if len(comparison.groups) > 1 else ""
    return (
        f"**{SIGNS[row.verdict]} {after} {PLAIN_WORDS[row.verdict]} {before}:** {METRIC_WORDS[comparison.metric]} shifts by"
        f" {signed(row.shift.hodges_lehmann)} {comparison.unit}{said_interval} over"
        f" {counted(row.shift.pairs, 'pair')} of cells{groups}; stuck cells {stuck(row.before)} → {stuck(row.after)}."
    )


def comparison_table(comparison: Comparison) -> str:
    """One row for each group, in the layout of the published experiment's table, as Markdown."""
    before, after = (short(arm) for arm in comparison.arms)
    by = [label.replace("_", " ").capitalize() for label in comparison.by]
    heads = [
        *by,
        f"Mean {METRIC_WORDS[comparison.metric]}, {before} → {after} (stuck cells)",
        "Pairs",
        f"Shift, {comparison.unit}",
        "95 % interval",
        "Interval of the mean",
        "Verdict",
    ]
    rules = [":--"] * len(by) + ["--:"] * 5 + [":--"]
    return "\n".join([line_of(heads), line_of(rules), *(row_of(group, comparison) for group in comparison.rows)])


def row_of(group: Group, comparison: Comparison) -> str:
    """One group."""
    labels = group.labels or (f"**{ALL_GROUPS}**", *[""] * (len(comparison.by) - 1))
    return line_of(
        [
            *(short(label) if group.labels else label for label in labels),
            change(group, comparison.metric).replace("->", "→"),
            f"{group.shift.pairs:,}",
            signed(group.shift.hodges_lehmann),
            interval_text(group.shift.hodges_lehmann_interval),
            interval_text(group.shift.mean_interval),
            f"**{SIGNS[group.verdict]} {verdict_text(group)}**",
        ]
    )


def line_of(cells: list[str]) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def group_name(group: Group) -> str:
    """A group as charts label it; its parts are broken into lines there."""
    return " · ".join(label or "-" for label in group.labels) or ALL_GROUPS

"""A comparison as a Markdown table, ready for a pull request."""

from queries.compare.comparison import Comparison, Group
from queries.compare.wording import ALL_GROUPS, change, how_computed, interval_text, remarks, signed, verdict_text


def markdown(comparison: Comparison) -> str:
    """The table in the layout of the published one, shifts and verdicts beside it, remarks and a foot line below."""
    before, after = comparison.arms
    heads = [
        *comparison.by,
        f"{comparison.metric}, {before} -> {after} (stuck cells)",
        "pairs",
        f"shift, {comparison.unit}",
        "95 % interval",
        "mean's interval",
        "verdict",
    ]
    lines = [line_of(heads), line_of(["---"] * len(heads))]
    lines += [line_of(row_of(group, comparison)) for group in comparison.rows]
    if told := remarks(comparison):
        lines += ["", *(f"- {escaped(remark)}" for remark in told)]
    return "\n".join([*lines, "", f"<sub>{how_computed(comparison)}</sub>", ""])


def row_of(group: Group, comparison: Comparison) -> list[str]:
    """One row."""
    blank = [""] * (len(comparison.by) - 1)
    return [
        *(group.labels or [f"**{ALL_GROUPS}**", *blank]),
        change(group, comparison.metric),
        str(group.shift.pairs),
        signed(group.shift.hodges_lehmann),
        interval_text(group.shift.hodges_lehmann_interval),
        interval_text(group.shift.mean_interval),
        f"**{verdict_text(group)}**",
    ]


def line_of(texts: list[str]) -> str:
    """A line of the table."""
    return "| " + " | ".join(map(escaped, texts)) + " |"


def escaped(text: str) -> str:
    """What a label may hold and a table must not."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")

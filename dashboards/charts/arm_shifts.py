"""By how much the arms differ, group by group: the shift, its two intervals, and the noise it is held against."""

from typing import Any

import altair as alt
import pandas as pd

from dashboards.charts import palette
from dashboards.charts.arm_cells import group_axis, value_axis
from dashboards.words.comparisons import SIGNS, group_name
from queries.compare.comparison import Comparison, Group, Verdict

ROW_PX = 44
COLOURS = {
    Verdict.BETTER: palette.AFTER,
    Verdict.WORSE: palette.WORSE,
    Verdict.WITHIN_NOISE: palette.INK,
    Verdict.UNDETERMINED: palette.INK,
}


def arm_shifts(comparison: Comparison) -> alt.LayerChart:
    """A row for each group, its verdict in words beside it."""
    rows = pd.DataFrame([shift_row(group) for group in comparison.rows])
    base = alt.Chart(rows).encode(y=group_axis(), tooltip=tooltip(comparison.unit))
    before, after = comparison.arms
    x = alt.X(
        "shift:Q",
        title=f"shift from {before} to {after}, {comparison.unit}",
        axis=value_axis(),
        scale=alt.Scale(domain=extent(rows), nice=True),
    )
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=None,
    )
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            base.mark_bar(color=palette.INK, opacity=0.22, height=24).encode(x=alt.X("band_low:Q"), x2="band_high"),
            alt.Chart(pd.DataFrame({"none": [0.0]})).mark_rule(color=palette.INK, strokeDash=[4, 3]).encode(x="none:Q"),
            base.mark_rule(strokeWidth=1.5).encode(x=alt.X("mean_low:Q"), x2="mean_high", color=colour),
            base.mark_bar(height=6, cornerRadius=3).encode(x=alt.X("low:Q"), x2="high", color=colour),
            base.mark_point(filled=True, size=110, opacity=1).encode(x=x, color=colour, shape=alt.value("diamond")),
            base.mark_text(align="left", dx=7, dy=-14, color=palette.INK, fontSize=12).encode(
                x=alt.X("shift:Q"), text="words:N"
            ),
        ]
    ).properties(height=alt.Step(ROW_PX), autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return chart


def shift_row(group: Group) -> dict[str, Any]:
    """What is drawn of a group; what is not known is left out."""
    typical, mean = group.shift.hodges_lehmann_interval, group.shift.mean_interval
    band = group.same_arm_band
    return {
        "group": group_name(group),
        "shift": group.shift.hodges_lehmann,
        "low": typical.low if typical else None,
        "high": typical.high if typical else None,
        "mean_low": mean.low if mean else None,
        "mean_high": mean.high if mean else None,
        "band_low": None if band is None else -band,
        "band_high": band,
        "pairs": group.shift.pairs,
        "p_value": group.p_value_adjusted,
        "verdict": str(group.verdict),
        "words": f"{SIGNS[group.verdict]} {group.verdict}",
    }


def extent(rows: pd.DataFrame) -> list[float]:
    """From the lowest to the highest of what is drawn, with room for the words to the right."""
    columns = ["shift", "low", "high", "mean_low", "mean_high", "band_low", "band_high"]
    values = rows[columns].astype("float64")
    low, high = min(values.min().min(), 0.0), max(values.max().max(), 0.0)
    span = max(high - low, 0.1)
    return [low - 0.05 * span, high + 0.35 * span]


def tooltip(unit: str) -> list[alt.Tooltip]:
    """What hovering over a group tells."""
    return [
        alt.Tooltip("group:N"),
        alt.Tooltip("verdict:N"),
        alt.Tooltip("shift:Q", title=f"shift, {unit}", format="+.2f"),
        alt.Tooltip("low:Q", title="95 % interval from", format="+.2f"),
        alt.Tooltip("high:Q", title="to", format="+.2f"),
        alt.Tooltip("mean_low:Q", title="interval of the mean from", format="+.2f"),
        alt.Tooltip("mean_high:Q", title="to ", format="+.2f"),
        alt.Tooltip("band_high:Q", title="one arm against itself, ±", format=".2f"),
        alt.Tooltip("p_value:Q", title="p, adjusted", format=".2~g"),
        alt.Tooltip("pairs:Q"),
    ]

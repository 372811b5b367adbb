"""Simulated runs of a cell as dots, against what was recorded."""

from collections.abc import Iterator
from typing import Any

import altair as alt
import pandas as pd

from dashboards.charts import palette, times
from dashboards.charts.arm_cells import value_axis
from queries.replay.result import ClosedLoop, Replay, Simulated

ROW_PX = 40
LABEL_PX = 190


def simulated_runs(replay: Replay, loop: ClosedLoop) -> alt.LayerChart:
    """A row for each kind of run, a dot a seed; the line is what was recorded, the bar the 95 % prediction interval."""
    rows = pd.DataFrame(run_rows(replay, loop))
    low, high = loop.interval
    under = under_model(replay)
    y = alt.Y(
        "kind:N",
        sort=None,
        title=None,
        axis=alt.Axis(
            labelExpr="split(datum.label, ', ')", labelLimit=LABEL_PX, ticks=False, domain=False, **times.lines(2)
        ),
    )
    x = alt.X("tokens_per_s:Q", title="tokens/s, simulated", scale=alt.Scale(zero=False), axis=value_axis())
    interval = pd.DataFrame({"kind": [under], "low": [low], "high": [high]})
    recorded = pd.DataFrame({"recorded": [loop.recorded_tokens_per_s], "words": ["recorded"]})
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            alt.Chart(rows)
            .mark_circle(size=60, opacity=0.65)
            .encode(
                y=y,
                x=x,
                color=alt.condition(alt.datum.kind == under, alt.value(palette.AFTER), alt.value(palette.INK)),
                tooltip=[
                    alt.Tooltip("kind:N", title="simulated"),
                    alt.Tooltip("tokens_per_s:Q", title="tokens/s", format=",.0f"),
                    alt.Tooltip("plain_fraction:Q", title="plain fraction", format=".1%"),
                    alt.Tooltip("seed:Q", title="run"),
                ],
            ),
            alt.Chart(interval)
            .mark_bar(height=5, opacity=0.45, color=palette.AFTER, yOffset=12)
            .encode(y=y, x="low:Q", x2="high"),
            alt.Chart(recorded).mark_rule(color=palette.FLAG, strokeWidth=2, strokeDash=[5, 3]).encode(x="recorded:Q"),
            alt.Chart(recorded)
            .mark_text(color=palette.FLAG, align="left", dx=5, y=6, fontSize=12)
            .encode(x="recorded:Q", text="words:N"),
        ]
    ).properties(height=alt.Step(ROW_PX), autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return chart


def under_model(replay: Replay) -> str:
    """The row of the model that is asked about."""
    return f"under, {replay.cost_model}"


def run_rows(replay: Replay, loop: ClosedLoop) -> Iterator[dict[str, Any]]:
    """A row for each run."""
    kinds: list[tuple[str, tuple[Simulated, ...]]] = [
        ("the recorded, choices again", loop.recorded_choices),
        (f"under, {replay.recorded_cost_model} again", loop.recorded_model),
        (under_model(replay), loop.runs),
    ]
    for kind, runs in kinds:
        for seed, one in enumerate(runs, 1):
            yield {
                "kind": kind,
                "seed": seed,
                "tokens_per_s": one.tokens_per_s,
                "plain_fraction": one.plain_fraction,
            }

"""By how much the chosen graph was ahead of the next best, decision by decision, as the scheduler believed."""

import altair as alt
import pandas as pd

from dashboards.charts import palette, times


def margins(candidates: pd.DataFrame, colours: dict[str, str], x_scale: alt.Scale) -> alt.LayerChart:
    """A dot for each ordinary decision, in the colour of the graph chosen; on the line it was a tie.

    Args:
        candidates: Rows of the query `candidates`.
        colours: Of each graph.
        x_scale: The time scale that the panels share.
    """
    shades = alt.Scale(domain=list(colours), range=list(colours.values()))
    x = alt.X("at_ms:T", scale=x_scale, axis=times.axis(labels=False))
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            alt.Chart(pd.DataFrame({"tie": [0.0]}))
            .mark_rule(color=palette.INK, strokeDash=[4, 3], tooltip=None)
            .encode(y=alt.Y("tie:Q", title="%", axis=times.value_axis(3))),
            alt.Chart(decisions(candidates))
            .mark_circle(size=16, opacity=0.7, clip=True)
            .encode(
                x=x,
                y=alt.Y("margin_percent:Q", title="%", axis=times.value_axis(3)),
                color=alt.Color("graph:N", scale=shades, legend=None),
                tooltip=[
                    alt.Tooltip("graph:N", title="chosen"),
                    alt.Tooltip("next_best:N", title="next best"),
                    alt.Tooltip("margin_percent:Q", title="lead, %", format="+.2f"),
                    alt.Tooltip("sequence:Q", format="d"),
                    *times.tooltip("at_ms", "at_utc", "submitted"),
                ],
            ),
        ]
    ).properties(height=80, title="Lead over the next best, %")
    return chart


def decisions(candidates: pd.DataFrame) -> pd.DataFrame:
    """Ordinary decisions between several graphs, with the lead of the one chosen in expected tokens/s."""
    rated = candidates[(candidates.graph_purpose == "ordinary") & candidates.expected_tokens_per_s.notna()]
    chosen = rated[rated.chosen.astype(bool)].drop_duplicates("graph_sequence").set_index("graph_sequence")
    others = rated[~rated.chosen.astype(bool)].sort_values("expected_tokens_per_s")
    next_best = others.groupby("graph_sequence")[["graph", "expected_tokens_per_s"]].last()
    both = chosen.join(
        next_best.rename(columns={"graph": "next_best", "expected_tokens_per_s": "next_rate"}), how="inner"
    )
    both = both[both.next_rate > 0]
    return pd.DataFrame(
        {
            "sequence": both.index,
            "graph": both.graph,
            "next_best": both.next_best,
            "margin_percent": 100 * (both.expected_tokens_per_s / both.next_rate - 1),
            "at_ms": times.epoch_ms(both.started_at),
            "at_utc": times.utc(both.started_at),
        }
    ).reset_index(drop=True)

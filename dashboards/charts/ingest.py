"""What comes in and what is stored each second, while somebody looks."""

import altair as alt
import pandas as pd

from dashboards.charts import palette, times

HEIGHT_PX = 180


def ingest(rates: pd.DataFrame) -> alt.Chart:
    """Two lines over time, one of them dashed.

    Args:
        rates: `at` (UTC), `of`, `per_s`.
    """
    drawn = pd.DataFrame(
        {
            "at_ms": times.epoch_ms(rates["at"]),
            "at_utc": times.utc(rates["at"]),
            "of": rates["of"],
            "per_s": rates["per_s"].astype("float64"),
        }
    )
    order = ["spans received", "executions stored"]
    chart: alt.Chart = (
        alt.Chart(drawn)
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("at_ms:T", axis=times.axis(), scale=alt.Scale(nice=False)),
            y=alt.Y(
                "per_s:Q",
                title="per second",
                axis=alt.Axis(tickCount=4, format=",~f"),
                scale=alt.Scale(domain=[0, max(drawn.per_s.max(), 1.0)]),
            ),
            color=alt.Color(
                "of:N",
                title=None,
                sort=order,
                scale=alt.Scale(
                    domain=order, range=[palette.SHADES["speculative"][0], palette.SHADES["plain_decode"][0]]
                ),
                legend=alt.Legend(orient="top"),
            ),
            strokeDash=alt.StrokeDash("of:N", title=None, scale=alt.Scale(domain=order, range=[[1, 0], [5, 3]])),
            tooltip=[
                alt.Tooltip("of:N", title="what"),
                alt.Tooltip("per_s:Q", title="per second", format=",.1f"),
                *times.tooltip("at_ms", "at_utc", "read"),
            ],
        )
        .properties(height=HEIGHT_PX)
    )
    return chart

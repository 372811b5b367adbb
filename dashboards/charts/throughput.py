"""Tokens/s over a cell: tokens of the executions that completed in each whole second."""

import altair as alt
import pandas as pd

from dashboards.charts import palette, times

SECOND = "1s"


def throughput(executions: pd.DataFrame, x_scale: alt.Scale) -> alt.Chart:
    """A step line over the whole seconds of the cell.

    Args:
        executions: Rows of the query `executions`.
        x_scale: The time scale that the panels share.
    """
    return (
        alt.Chart(tokens_by_second(executions), title="Tokens emitted in each second")
        .mark_area(interpolate="step-after", line={"color": palette.INK, "strokeWidth": 1.5}, color=palette.INK, opacity=0.35, clip=True)
        .encode(
            x=alt.X("second_ms:T", scale=x_scale, axis=times.axis(labels=False)),
            y=alt.Y("tokens_per_s:Q", title="tokens/s", axis=times.value_axis(tick_count=3)),
            tooltip=[
                alt.Tooltip("tokens_per_s:Q", title="tokens/s", format=",d"),
                *times.tooltip("second_ms", "second_utc", "second"),
            ],
        )
        .properties(height=70)
    )


def tokens_by_second(executions: pd.DataFrame) -> pd.DataFrame:
    """Tokens of each second that lies wholly within the cell: a second cut short would look like a dip."""
    ended = executions.ended_at.astype("datetime64[ns, UTC]")
    tokens = executions.batch_tokens_emitted.astype("float64").fillna(0)
    by_second = tokens.groupby(ended.dt.floor(SECOND)).sum().asfreq(SECOND, fill_value=0)
    first, last = executions.started_at.min(), ended.max()
    whole = by_second[(by_second.index >= first.floor(SECOND)) & (by_second.index + pd.Timedelta(SECOND) <= last)]
    # The step's right end, so that the last second has a width.
    closed = pd.concat([whole, whole.iloc[-1:].rename(lambda at: at + pd.Timedelta(SECOND))])
    seconds = closed.index.to_series()
    return pd.DataFrame(
        {"second_ms": times.epoch_ms(seconds), "second_utc": times.utc(seconds), "tokens_per_s": closed.to_numpy()}
    ).reset_index(drop=True)

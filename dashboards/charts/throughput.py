"""Tokens/s over a cell: tokens of the executions that completed in each whole second, where they are reported."""

import altair as alt
import pandas as pd

from dashboards.charts import palette, times

SECOND = "1s"
TITLE = "Tokens emitted in each second"
UNREPORTED = f"{TITLE}: unknown"


def throughput(executions: pd.DataFrame, x_scale: alt.Scale) -> alt.Chart:
    """A step line over the whole seconds of the cell.

    Args:
        executions: Rows of the query `executions`.
        x_scale: The time scale that the panels share.
    """
    chart: alt.Chart = (
        alt.Chart(tokens_by_second(executions), title=TITLE if are_reported(executions) else UNREPORTED)
        .mark_area(
            interpolate="step-after",
            line={"color": palette.INK, "strokeWidth": 1.5},
            color=palette.INK,
            opacity=0.35,
            clip=True,
        )
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
    return chart


def are_reported(executions: pd.DataFrame) -> bool:
    """Whether any execution says how many tokens it emitted, as the query `cells` has it."""
    return bool(executions.batch_tokens_emitted.notna().any())


def tokens_by_second(executions: pd.DataFrame) -> pd.DataFrame:
    """Tokens of each second that lies wholly within the cell: a second cut short would look like a dip. Without rows where no
    tokens are reported; missing in a second whose executions report none."""
    ended = executions.ended_at.astype("datetime64[ns, UTC]")
    tokens = executions.batch_tokens_emitted.astype("float64")
    by_second = tokens.groupby(ended.dt.floor(SECOND)).sum(min_count=1).asfreq(SECOND, fill_value=0)
    seconds = by_second.index.to_series().astype("datetime64[ns, UTC]")
    # To the millisecond: an engine's first submission is a little after the second in which it began.
    whole = (
        are_reported(executions)
        & (seconds >= executions.started_at.min().floor("ms"))
        & (seconds + pd.Timedelta(SECOND) <= ended.max())
    )
    drawn = pd.DataFrame({"second": seconds[whole], "tokens_per_s": by_second[whole]}).reset_index(drop=True)
    # The step's right end, so that the last second, and the last before one that is not known, has a width.
    is_last = drawn.tokens_per_s.notna() & drawn.tokens_per_s.shift(-1).isna()
    closing = drawn[is_last].assign(second=drawn.second + pd.Timedelta(SECOND))
    drawn = pd.concat([closing, drawn]).sort_values("second", kind="stable", ignore_index=True)
    return drawn.assign(second_ms=times.epoch_ms(drawn.second), second_utc=times.utc(drawn.second))

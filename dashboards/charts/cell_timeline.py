"""A cell's executions on one time axis: an overview to brush, and panels below that show what is brushed.

Panels share the time axis, from the cell's begin to its end; brushing the overview zooms all of them.
"""

from collections.abc import Iterable, Sequence

import altair as alt
import pandas as pd

from dashboards.charts import estimates, gpu_lanes, idle_gaps, margins, notes, palette, queue_depth, throughput, times
from dashboards.charts.whole_time import from_end_to_end
from queries.annotations.marks import Mark
from queries.findings.findings import Poison

OVERVIEW_HEIGHT_PX = 26
BRUSH = "zoom"


def cell_timeline(
    executions: pd.DataFrame,
    candidates: pd.DataFrame,
    poisons: Sequence[Poison] = (),
    marks: Iterable[Mark] = (),
) -> alt.VConcatChart:
    """Everything of a cell that has a time. Clicking an execution of the GPU's lanes selects it (`gpu_lanes.SELECTION`).

    Args:
        executions: Rows of the query `executions`.
        candidates: Rows of the query `candidates`; empty where the engine records none.
        poisons: Executions that inflated an estimate to harm, marked where their graph's estimate is drawn.
        marks: What people noted; those within the cell are drawn.
    """
    drawn = drawn_executions(executions)
    since_ms, until_ms = drawn.submitted_ms.min(), max(drawn.gpu_end_ms.max(), drawn.ended_ms.max())
    candidates = candidates[within(candidates, since_ms, until_ms)]
    colours = palette.graph_colours(executions)
    brush = alt.selection_interval(name=BRUSH, encodings=["x"])
    zoomed = times.zoomed(brush)
    panels: list[alt.Chart | alt.LayerChart] = [
        overview(drawn, colours, brush),
        gpu_lanes.gpu_lanes(drawn, colours, zoomed),
        idle_gaps.idle_gaps(drawn, zoomed),
        queue_depth.queue_depth(drawn, zoomed),
        throughput.throughput(executions, zoomed),
    ]
    if not candidates.empty:
        panels.append(margins.margins(candidates, colours, zoomed))
        known = [poison for poison in poisons if since_ms <= poison.at_ns / 1e6 <= until_ms]
        panels += estimates.estimates(drawn, candidates, known, colours, zoomed)
    noted = notes.note_rows(marks, since_ms, until_ms)
    if not noted.empty:
        panels.insert(1, notes.notes_panel(noted, zoomed))
    return stacked(list(from_end_to_end(panels, since_ms, until_ms)))


def within(candidates: pd.DataFrame, since_ms: float, until_ms: float) -> "pd.Series[bool]":
    """Which candidates are of decisions that are drawn: where executions are cut short, theirs may go on."""
    if candidates.empty:
        return pd.Series(False, index=candidates.index)
    return times.epoch_ms(candidates.started_at).between(since_ms, until_ms)


def stacked(panels: Sequence[alt.Chart | alt.LayerChart]) -> alt.VConcatChart:
    """Panels one below the other, their plotting areas flush."""
    chart: alt.VConcatChart = (
        alt.vconcat(*panels, spacing=6)
        .resolve_scale(color="independent", x="independent")
        .configure_view(stroke=None)
        .configure_title(anchor="start", frame="group", fontSize=13, offset=6)
    )
    return chart


def drawn_executions(executions: pd.DataFrame) -> pd.DataFrame:
    """What the panels draw of each execution. Where the device's start is not recorded, its end is the completion's."""
    submitted = times.epoch_ms(executions.started_at)
    gpu_ms = executions.graph_gpu_time_ns / 1e6
    offset_ms = executions.graph_gpu_start_offset_ns.astype("float64") / 1e6
    gpu_start = (submitted + offset_ms).fillna(times.epoch_ms(executions.ended_at) - gpu_ms)
    return pd.DataFrame(
        {
            "sequence": executions.graph_sequence,
            "graph": executions.graph_name,
            "purpose": executions.graph_purpose,
            "submitted_ms": submitted,
            "submitted_utc": times.utc(executions.started_at),
            "gpu_start_ms": gpu_start,
            "gpu_end_ms": gpu_start + gpu_ms,
            "ended_ms": times.epoch_ms(executions.ended_at),
            # The first one's may have begun long before the cell.
            "gap_start_ms": (gpu_start - executions.idle_gap_ns.clip(lower=0) / 1e6).clip(lower=submitted.min()),
            "gpu_time_ms": gpu_ms,
            "wall_time_ms": executions.graph_wall_time_ns / 1e6,
            "idle_gap_ms": executions.idle_gap_ns.clip(lower=0) / 1e6,
            "queue_depth": executions.graph_queue_depth.astype("float64"),
            "estimate_ms": executions.scheduler_estimate_ns.astype("float64") / 1e6,
            "after_idle": executions.graph_after_idle.astype(bool),
            "tokens": executions.batch_tokens_emitted.astype("float64"),
        }
    ).reset_index(drop=True)


def overview(drawn: pd.DataFrame, colours: dict[str, str], brush: alt.Parameter) -> alt.Chart:
    """Which graph ran when, in one strip; brushing it zooms the panels."""
    chart: alt.Chart = (
        alt.Chart(drawn, title="Who was chosen (drag to zoom)", name="overview")
        .mark_rect()
        .encode(
            x=alt.X("gpu_start_ms:T", axis=times.axis(), scale=alt.Scale(nice=False), title=None),
            x2="gpu_end_ms",
            color=alt.Color(
                "graph:N",
                scale=alt.Scale(domain=list(colours), range=list(colours.values())),
                legend=alt.Legend(orient="top", columns=palette.LEGEND_COLUMNS, title=None, symbolType="square"),
            ),
            tooltip=gpu_lanes.tooltip(),
        )
        .add_params(brush)
        .properties(height=OVERVIEW_HEIGHT_PX)
    )
    return chart

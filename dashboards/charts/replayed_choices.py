"""What was chosen, what another cost model would have chosen, and what each charged, on one time axis."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import altair as alt
import pandas as pd

from dashboards.charts import notes, palette, times
from dashboards.charts.whole_time import from_end_to_end
from queries.annotations.marks import Mark
from queries.replay.exact import ReplayedDecision
from queries.replay.result import ExactReplay, Replay

LANE_PX = 26
GRAPHS_MAX = 6
"""Panels of charges; the graphs that were candidates most often come first."""
RECORDED = "recorded"
BRUSH = "zoom"


def replayed_choices(
    replay: Replay, exact: ExactReplay, colours: dict[str, str], marks: Iterable[Mark] = ()
) -> alt.VConcatChart:
    """Both choices as lanes to brush, and the charges of each candidate below.

    Args:
        replay: The cell and the models.
        exact: Its decisions; at least one.
        colours: Of the graphs that the cell executed.
        marks: What people noted; those within the cell are drawn.
    """
    brush = alt.selection_interval(name=BRUSH, encodings=["x"])
    charges = pd.DataFrame(charge_rows(exact, replay.cost_model))
    graphs = sorted(charges.graph.value_counts().index[:GRAPHS_MAX]) if not charges.empty else []
    panels: list[alt.Chart | alt.LayerChart] = [
        panel(graph, charges[charges.graph == graph], replay.cost_model, brush, last=graph == graphs[-1])
        for graph in graphs
    ]
    noted = noted_within(replay, exact, marks)
    if not noted.empty:
        panels.insert(0, notes.notes_panel(noted, times.zoomed(brush)))
    panels.insert(0, lanes(replay, exact, colours, brush))
    chart: alt.VConcatChart = (
        alt.vconcat(*from_end_to_end(panels, *span_ms(replay, exact)), spacing=8)
        .resolve_scale(color="independent", x="independent", strokeDash="independent")
        .configure_view(stroke=None)
        .configure_title(anchor="start", frame="group", fontSize=13, offset=6)
    )
    return chart


def span_ms(replay: Replay, exact: ExactReplay) -> tuple[float, float]:
    """What the lanes show, in Unix milliseconds."""
    return exact.decisions[0].started_at / 1e6, replay.ended_at / 1e6


def noted_within(replay: Replay, exact: ExactReplay, marks: Iterable[Mark]) -> pd.DataFrame:
    """What was noted in the time that the lanes show."""
    return notes.note_rows(marks, *span_ms(replay, exact))


def lanes(replay: Replay, exact: ExactReplay, colours: dict[str, str], brush: alt.Parameter) -> alt.Chart:
    """A lane for what was chosen, and one for what would have been."""
    rows = pd.DataFrame(choice_rows(replay, exact))
    shades = {graph: colours.get(graph, palette.INK) for graph in sorted(set(rows.graph), key=ordered(colours))}
    chart: alt.Chart = (
        alt.Chart(rows, title="Who is chosen (drag to zoom)", name="lanes")
        .mark_rect()
        .encode(
            x=alt.X("from_ms:T", axis=times.axis(), scale=alt.Scale(nice=False), title=None),
            x2="to_ms",
            y=alt.Y("chooser:N", sort=[RECORDED, replay.cost_model], title=None, axis=times.lane_axis()),
            color=alt.Color(
                "graph:N",
                scale=alt.Scale(domain=list(shades), range=list(shades.values())),
                legend=alt.Legend(orient="top", columns=palette.LEGEND_COLUMNS, title=None, symbolType="square"),
            ),
            tooltip=[
                alt.Tooltip("chooser:N"),
                alt.Tooltip("graph:N"),
                alt.Tooltip("decisions:Q", format=","),
                *times.tooltip("from_ms", "from_utc", "from"),
            ],
        )
        .add_params(brush)
        .properties(height=2 * LANE_PX)
    )
    return chart


def ordered(colours: dict[str, str]) -> Any:
    """A sorting key: known graphs in the order of their colours, others after them."""
    place = {graph: number for number, graph in enumerate(colours)}
    return lambda graph: (place.get(graph, len(place)), graph)


def choice_rows(replay: Replay, exact: ExactReplay) -> Iterator[dict[str, Any]]:
    """A row for each stretch of the same choice."""
    choosers = (RECORDED, lambda one: one.graph_name), (replay.cost_model, lambda one: one.replayed_graph_name)
    ends_ns = {
        one.graph_sequence: after.started_at for one, after in zip(exact.decisions, exact.decisions[1:], strict=False)
    }
    for chooser, graph_of in choosers:
        for graph, group in groupby(exact.decisions, graph_of):
            stretch = list(group)
            yield {
                "chooser": chooser,
                "graph": graph,
                "decisions": len(stretch),
                "from_ms": stretch[0].started_at / 1e6,
                "to_ms": ends_ns.get(stretch[-1].graph_sequence, replay.ended_at) / 1e6,
                "from_utc": utc(stretch[0].started_at),
            }


def utc(unix_ns: int) -> str:
    """An instant as UTC text."""
    return times.utc(pd.Series([pd.Timestamp(unix_ns, unit="ns", tz="UTC")]))[0]


def panel(graph: str, charges: pd.DataFrame, model: str, brush: alt.Parameter, *, last: bool) -> alt.Chart:
    """What one graph was charged, and what it would have been."""
    domain = [RECORDED, model]
    chart: alt.Chart = (
        alt.Chart(charges, title=f"Charged for {graph}, ms")
        .mark_line(interpolate="step-after", strokeWidth=2, clip=True)
        .encode(
            x=alt.X("at_ms:T", scale=times.zoomed(brush), axis=times.axis(labels=last)),
            y=alt.Y("charge_ms:Q", title="ms", scale=alt.Scale(zero=False), axis=times.value_axis(3)),
            color=alt.Color("by:N", scale=alt.Scale(domain=domain, range=[palette.FLAG, palette.AFTER]), legend=None),
            strokeDash=alt.StrokeDash("by:N", scale=alt.Scale(domain=domain, range=[[5, 3], [1, 0]]), legend=None),
            tooltip=[
                alt.Tooltip("by:N", title="charged by"),
                alt.Tooltip("charge_ms:Q", title="charge, ms", format=".3f"),
                *times.tooltip("at_ms", "at_utc", "from"),
            ],
        )
        .properties(height=80)
    )
    return chart


def charge_rows(exact: ExactReplay, model: str) -> Iterator[dict[str, Any]]:
    """A row for each change of a charge, and one at the end: a step line needs no more."""
    charged: dict[tuple[str, str], int] = {}
    last = exact.decisions[-1]
    for one in exact.decisions:
        for by, graph, charge_ns in charges_of(one, model):
            if charged.get((by, graph)) != charge_ns or one is last:
                charged[by, graph] = charge_ns
                yield {
                    "by": by,
                    "graph": graph,
                    "charge_ms": charge_ns / 1e6,
                    "at_ms": one.started_at / 1e6,
                    "at_utc": utc(one.started_at),
                }


def charges_of(one: ReplayedDecision, model: str) -> Iterator[tuple[str, str, int]]:
    """Who charged which graph how much, in one decision."""
    for graph, recorded, replayed in zip(
        one.candidate_graphs, one.recorded_estimates_ns, one.candidate_estimates_ns, strict=True
    ):
        yield RECORDED, graph, recorded
        yield model, graph, replayed

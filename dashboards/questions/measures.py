"""What the Graphs page can show of a graph over time, and where its rows come from."""

import math
from typing import Final, NamedTuple

import pandas as pd

from dashboards.questions.arrivals import in_ns
from dashboards.questions.ranges import TimeRange, time_parameters
from dashboards.reading.answers import Answer, answer
from queries.changes.history import Metric
from queries.clocks_ahead import happened_until

STEPS: Final = 400
"""Steps that a time range is cut into."""
ROWS_MAX: Final = 60_000
"""Steps of engines and graphs drawn; the page says where there are more."""


class Measure(NamedTuple):
    """One of them."""

    words: str
    """In the URL too."""
    of_step: str
    """What a point stands for."""
    column: str
    """Of `history`, in ns."""
    changes_in: Metric | None
    """Whose changes of level are looked for."""


MEASURES: Final = {
    measure.words: measure
    for measure in (
        Measure("GPU time", "median GPU time", "gpu_time_median_ns", Metric.GPU_TIME),
        Measure("handoff", "median handoff", "handoff_median_ns", Metric.HANDOFF),
        Measure("estimate", "mean estimate", "estimate_step_ns", None),
    )
}
ESTIMATE_STEPS_S: Final = (10, 30, 120, 300, 1800)
"""Lengths of a step; the shortest is taken of which a time range has at most `STEPS`."""


def history(measure: Measure, time_range: TimeRange, wanted: dict[str, str]) -> Answer:
    """Steps of each graph on each engine, from `graph_history` or `estimate_history`.

    Args:
        measure: What is shown.
        time_range: Since when.
        wanted: Filters by `host` and `package`.
    """
    if measure.changes_in is not None:
        return answer("graph_history", steps=STEPS, limit=ROWS_MAX, **time_parameters(time_range), **wanted)
    step_s = estimate_step_s(time_range.length_s)
    return answer("estimate_history", step_s=step_s, limit=ROWS_MAX, **time_parameters(time_range), **wanted)


def estimate_step_s(length_s: float | None) -> int:
    """The step that suits a time range; None is all time."""
    span_s = math.inf if length_s is None else length_s
    return next((step_s for step_s in ESTIMATE_STEPS_S if span_s <= STEPS * step_s), ESTIMATE_STEPS_S[-1])


def steps_of(rows: pd.DataFrame, engines: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """The steps that have the measure: `at`, `graph`, `series` (host and package), `instance`, `value_ms`, `executions`.

    Args:
        rows: Of `history`.
        engines: Rows of the query `engines`.
        measure: What is shown.
    """
    columns = ["at", "graph", "series", "instance", "value_ms", "executions"]
    known = rows[rows[measure.column].notna()] if not rows.empty else rows
    if known.empty:
        return pd.DataFrame(columns=columns)
    names = engines.drop_duplicates("service_instance_id").set_index("service_instance_id")
    hosts = known.service_instance_id.map(names.host_name).fillna("")
    packages = known.service_instance_id.map(names.engine_package).fillna("")
    return pd.DataFrame(
        {
            "at": known.step_started_at,
            "graph": known[graph_column(known)],
            "series": series_named(hosts, packages),
            "instance": known.service_instance_id,
            # A handoff below 0 is clock rounding.
            "value_ms": known[measure.column].astype("float64").clip(lower=0) / 1e6,
            "executions": known.executions,
        }
    ).reset_index(drop=True)


def up_to_arrival(
    steps: pd.DataFrame, engines: pd.DataFrame, time_range: TimeRange
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Steps up to the newest arrival where the time has no end, and whose clocks put others after it: by how much, in s.

    Args:
        steps: Of `steps_of`.
        engines: Rows of the query `engines`.
        time_range: What is looked at.
    """
    if time_range.until or steps.empty or engines.empty:
        return steps, {}
    known = engines.drop_duplicates("service_instance_id").set_index("service_instance_id", drop=False)
    received = in_ns(known.last_received_at)
    is_after = in_ns(steps["at"]) > happened_until(received.max())
    after = steps[is_after & steps.instance.isin(known.index)]
    if after.empty:
        return steps, {}
    ahead = in_ns(after["at"]) - received.reindex(after.instance).set_axis(after.index)
    hosts = known.host_name.where(known.host_name != "", known.service_instance_id)
    by_host = ahead.dt.total_seconds().groupby(hosts.reindex(after.instance).to_numpy()).max()
    return steps.drop(after.index).reset_index(drop=True), {str(host): float(by) for host, by in by_host.items()}


def graph_column(rows: pd.DataFrame) -> str:
    """The column of `history` that names the graph."""
    return "graph_name" if "graph_name" in rows else "graph"


def of_graph(rows: pd.DataFrame, graph: str) -> pd.DataFrame:
    """The rows of `history` of one graph; '' is any."""
    return rows if rows.empty or not graph else rows[rows[graph_column(rows)] == graph]


def series_named(hosts: "pd.Series[str]", packages: "pd.Series[str]") -> "pd.Series[str]":
    """Host and package as one name."""
    return (hosts + " · " + packages).str.strip(" ·")


def graphs_in(steps: pd.DataFrame, costs: pd.DataFrame) -> list[str]:
    """The graphs, those that took most of the GPU's time first."""
    if costs.empty:
        return sorted(set(steps.graph))
    weight = (costs.gpu_time_median_ns * costs.executions).groupby(costs.graph_name).sum()
    return sorted(set(steps.graph), key=lambda graph: (-float(weight.get(graph, 0)), graph))

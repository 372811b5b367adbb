"""The history of a fleet as series: one for each group, a point for each step of an engine."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from engine_hooks.contract.names import (
    CELL_ARM,
    ENGINE_NAME,
    ENGINE_PACKAGE,
    ENGINE_RECIPE,
    ENGINE_VERSION,
    GRAPH_NAME,
    HOST_NAME,
    SCHEDULER_COST_MODEL,
    SERVICE_INSTANCE_ID,
    SERVICE_NAME,
    column_of,
)
from queries.clocks_ahead import happened_until
from queries.errors import CallError
from queries.runner import Rows, run

LABELS: Final[dict[str, str]] = {
    "host": column_of(HOST_NAME),
    "graph": column_of(GRAPH_NAME),
    "package": column_of(ENGINE_PACKAGE),
    "version": column_of(ENGINE_VERSION),
    "recipe": column_of(ENGINE_RECIPE),
    "cost_model": column_of(SCHEDULER_COST_MODEL),
    "arm": column_of(CELL_ARM),
    "service": column_of(SERVICE_NAME),
    "engine": column_of(ENGINE_NAME),
    "instance": column_of(SERVICE_INSTANCE_ID),
}
"""What series can be told apart by, and the column that holds it."""
ROWS_MAX: Final = 1_000_000
LAST_S: Final = 7 * 86_400
"""Without `from`: so much up to the newest arrival."""


class Metric(StrEnum):
    """What may change."""

    GPU_TIME = "gpu_time"
    TOKENS_PER_S = "tokens_per_s"
    ACCEPTANCE = "acceptance"
    HANDOFF = "handoff"


class MetricKind(NamedTuple):
    """How a metric is read."""

    column: str
    """Of the query `graph_history`."""
    by: tuple[str, ...]
    """What its series are told apart by, unless asked otherwise."""
    more_is_better: bool
    scale: float
    """From the column to the unit."""
    unit: str


METRICS: Final = {
    Metric.GPU_TIME: MetricKind("gpu_time_median_ns", ("host", "graph"), False, 1e-6, "ms"),
    Metric.TOKENS_PER_S: MetricKind("tokens_per_wall_s", ("host",), True, 1.0, "tokens/s"),
    Metric.ACCEPTANCE: MetricKind("acceptance_fraction", ("host", "graph"), True, 1.0, "fraction"),
    Metric.HANDOFF: MetricKind("handoff_median_ns", ("host", "graph"), False, 1e-6, "ms"),
}
NEED_GRAPH: Final = (Metric.GPU_TIME, Metric.HANDOFF)
"""Over several graphs together these would change with the mix alone."""


class Point(NamedTuple):
    """One step of one engine."""

    at: datetime
    value: float
    labels: dict[str, str]
    """By the short names of `LABELS`."""


class Series(NamedTuple):
    """One group's points in order of time."""

    labels: tuple[str, ...]
    points: tuple[Point, ...]


class History(NamedTuple):
    """The series that were asked for."""

    series: list[Series]
    ahead_s: dict[str, float]
    """Hosts whose clocks are ahead, so that some of what they recorded is left out, and by how much at least, in s."""


def labels_for(metric: Metric, by: str | None) -> tuple[str, ...]:
    """What series are told apart by.

    Raises:
        CallError: a label that executions do not have, none at all, or graphs mixed where they must not be.
    """
    if by is None:
        return METRICS[metric].by
    names = tuple(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))
    if not names or any(name not in LABELS for name in names):
        raise CallError(f"--by {by}: executions have {', '.join(LABELS)}")
    if metric in NEED_GRAPH and "graph" not in names:
        raise CallError(f"--by {by}: {metric} is told by graph, or it would change with the mix of graphs: add graph")
    return names


def stored_series(
    url: str, metric: Metric, by: Sequence[str], from_: str | None = None, to: str | None = None
) -> History:
    """The series in ClickHouse; a week up to the newest arrival where `from_` is not given.

    Without `to` they end at the newest arrival: what a clock that is ahead puts after it did not happen then.

    Raises:
        CallError: more than `ROWS_MAX` steps.
        QueriesError: as `queries.runner.run`.
    """
    values = {"from": from_, "to": to, "last_s": LAST_S, "by_graph": "graph" in by, "limit": ROWS_MAX + 1}
    rows = run("graph_history", url, "rows", **values)
    if len(rows) > ROWS_MAX:
        raise CallError(f"more than {ROWS_MAX:,} steps of engines and graphs: narrow the time by --from and --to")
    kept, ahead_s = (rows, {}) if to else up_to_arrival(rows)
    return History(series_of(kept, metric, by), ahead_s)


def up_to_arrival(rows: Rows) -> tuple[Rows, dict[str, float]]:
    """Rows of `graph_history` up to the newest arrival, and by how much the clocks of the others' hosts are ahead, in s."""
    if not rows:
        return rows, {}
    end = happened_until(max(row["last_received_at"] for row in rows))
    kept, ahead_s = [], dict[str, float]()
    for row in rows:
        if row["step_started_at"] <= end:
            kept.append(row)
            continue
        host = row[LABELS["host"]] or row[LABELS["instance"]]
        by_s = (row["step_started_at"] - row["last_received_at"]).total_seconds()
        ahead_s[host] = max(ahead_s.get(host, 0.0), by_s)
    return kept, ahead_s


def series_of(rows: Sequence[Mapping[str, Any]], metric: Metric, by: Sequence[str]) -> list[Series]:
    """Rows of `graph_history`, in order of time, as series in alphabetical order; a group without any value has none."""
    kind = METRICS[metric]
    groups: dict[tuple[str, ...], list[Point]] = {}
    for row in rows:
        labels = {label: str(row[column]) for label, column in LABELS.items()}
        group = tuple(labels[name] for name in by)
        value = row[kind.column]
        if value is not None:
            # A handoff below 0 is clock rounding.
            groups.setdefault(group, []).append(Point(row["step_started_at"], max(0.0, value) * kind.scale, labels))
    return [Series(group, tuple(points)) for group, points in sorted(groups.items())]

"""Stored rows as the records they came from: the executions of a cell, with what the same engine did before."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine_hooks.commands.counting import counted
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import FeedbackReason, GpuTimeSource, GraphKind, Purpose
from queries.errors import AmbiguousCellError, CallError, UnknownCellError
from queries.runner import run

if TYPE_CHECKING:
    import pyarrow

EXECUTIONS_MAX: Final = 200_000
"""Executions read at most, of a cell and of what came before it: some 800 MB as records."""
CELL_SPAN_MAX_S: Final = 3600
"""A cell is 30 s by design; what works on it by the second need not be ready for a year."""
HISTORY_S: Final = 120.0
"""How far back an engine is read by default: estimates expire after 30 s, so no model looks back much further."""


class CellExecutions(NamedTuple):
    """One cell of one engine, in the order of submission."""

    engine: EngineResource
    cell: str
    executions: tuple[GraphExecution, ...]
    """Of the cell, at least one."""
    before: tuple[GraphExecution, ...] = ()
    """What is stored of the same engine before the cell's first submission, up to the history asked for."""
    executions_dropped: int = 0
    """Of the cell, by sampling: `executions` are what came after that."""


def executions_of(url: str, service_instance_id: str, cell: str, history_s: float = HISTORY_S) -> CellExecutions:
    """The executions of a cell, and those of the same engine in `history_s` seconds before it.

    Args:
        url: ClickHouse.
        service_instance_id: The engine; '' where only one has a cell of that name.
        cell: As `cells` names it: the benchmark's `cell_id`, or the start of a 30 s window in Unix seconds.
        history_s: How far back to read; 0 reads the cell alone.

    Raises:
        UnknownCellError: no execution of that cell is stored.
        AmbiguousCellError: several engines have one, and none was named.
        CallError: it has more than `EXECUTIONS_MAX` executions, or spans more than `CELL_SPAN_MAX_S`.
        QueriesError: as `run`.
    """
    if not cell:
        raise CallError("a cell is needed: `tachograph query cells` lists them")
    table = recorded(url, cell=cell, service_instance_id=service_instance_id)
    engines = sorted(set(table["service_instance_id"].to_pylist()))
    if not engines:
        of = f" of engine {service_instance_id}" if service_instance_id else ""
        if dropped_of(url, cell, service_instance_id):
            raise UnknownCellError(
                f"sampling dropped the executions of cell {cell}{of}: it was healthy, and its figures are those of "
                f"`tachograph query cells --param cell={cell}`"
            )
        raise UnknownCellError(f"no execution of cell {cell}{of} is stored: `tachograph query cells` lists what is")
    if len(engines) > 1:
        raise AmbiguousCellError(
            f"cell {cell} is one of {len(engines)} engines: name one by --engine, {', '.join(engines[:8])}"
        )
    executions = records_of(table)
    check_span(cell, executions)
    engine = engine_of(table)
    began = instant(executions[0].started_at)
    before: tuple[GraphExecution, ...] = ()
    if history_s > 0:
        window = {"from": began - timedelta(seconds=history_s), "to": began}
        earlier = records_of(recorded(url, service_instance_id=engine.service_instance_id, **window))
        before = tuple(one for one in earlier if one.started_at < executions[0].started_at)
    return CellExecutions(engine, cell, executions, before, dropped_of(url, cell, engine.service_instance_id))


def dropped_of(url: str, cell: str, service_instance_id: str) -> int:
    """How many executions of a cell sampling dropped, as far back as it is remembered; of '' of any engine."""
    sampled = run("sampled_cells", url, "rows", cell=cell, service_instance_id=service_instance_id, days=180)
    return sum(int(one["executions"]) for one in sampled if one["fate"] == "dropped")


def sampled_away(executions_dropped: int) -> str:
    """What must be said first of a cell of which sampling dropped so many executions; '' where it dropped none."""
    if not executions_dropped:
        return ""
    return (
        f"Sampling dropped {counted(executions_dropped, 'execution')} of this cell: what is told is of the rest alone,"
        " while rollups count all."
    )


def check_span(cell: str, executions: Sequence[GraphExecution]) -> None:
    """Refuse what is no one stretch of an engine: a `cell_id` that was used again, or a clock that jumped.

    Raises:
        CallError: it spans more than `CELL_SPAN_MAX_S`.
    """
    starts = [one.started_at for one in executions]
    span_s = (max(starts) - min(starts)) / 1e9
    if span_s > CELL_SPAN_MAX_S:
        raise CallError(
            f"cell {cell} spans {span_s / 3600:,.1f} h, and a cell is a stretch of at most {CELL_SPAN_MAX_S // 3600} h:"
            " its cell_id was used twice, or a clock jumped; `tachograph query executions` shows when"
        )


def recorded(url: str, **values: object) -> "pyarrow.Table":
    """The rows of query `record`, all of them.

    Raises:
        CallError: there are more than `EXECUTIONS_MAX`.
    """
    table = run("record", url, "arrow", limit=EXECUTIONS_MAX + 1, **values)
    if table.num_rows > EXECUTIONS_MAX:
        raise CallError(f"more than {EXECUTIONS_MAX} executions at once: ask for a shorter cell or history")
    return table


def records_of(table: "pyarrow.Table") -> tuple[GraphExecution, ...]:
    """Rows that have every field of `GraphExecution` as columns, as records."""
    return tuple(
        map(GraphExecution._make, zip(*(values_of(table, name) for name in GraphExecution._fields), strict=True))
    )


def engine_of(table: "pyarrow.Table") -> EngineResource:
    """The engine of the first row."""
    first: dict[str, Any] = table.slice(0, 1).select(list(EngineResource._fields)).to_pylist()[0]
    attributes = dict(first["engine_attributes"] or ())
    return EngineResource(**{**first, "gpu_ids": tuple(first["gpu_ids"]), "engine_attributes": attributes})


def values_of(table: "pyarrow.Table", name: str) -> list[Any]:
    """One column as a record holds it."""
    import pyarrow  # noqa: PLC0415 (slows the start)

    column = table[name]
    if name == "started_at":
        return list(column.cast(pyarrow.timestamp("ns", "UTC")).cast(pyarrow.int64()).to_pylist())
    values = column.to_pylist()
    converted = CONVERTERS.get(name)
    return list(map(converted, values)) if converted else values


def optional(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """An enumeration whose empty text is "not recorded"."""
    known: dict[str, Any] = {"": None}
    return lambda text: known[text] if text in known else known.setdefault(text, kind(text))


CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "graph_kind": optional(GraphKind),
    "graph_purpose": optional(Purpose),
    "graph_gpu_time_source": optional(GpuTimeSource),
    "graph_completion_feedback_reason": optional(FeedbackReason),
    "scheduler_candidate_graphs": tuple,
    "scheduler_candidate_estimates_ns": tuple,
    "scheduler_candidate_expected_tokens": tuple,
}


def instant(unix_ns: int) -> datetime:
    """The first microsecond that is not before this moment."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=-(-unix_ns // 1000))

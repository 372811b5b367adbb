"""A cell as a timeline that https://ui.perfetto.dev opens: what the device and the host did, and what was believed.

Chrome's trace event format (JSON object form). Three lanes (device, host, in flight), two counters for every
candidate graph's estimate and for the queue depth, and a mark where an execution poisoned an estimate. Of a cell that
sampling dropped, a mark at the beginning says that what is seen is the rest. Times are microseconds since the first submission; the zero's Unix time stands in `otherData`.

Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from engine_hooks.contract.execution import GraphExecution
from queries.annotations.marks import Mark
from queries.findings.findings import Diagnosis, Poison
from queries.postmortem.story import after_began_ns, placed, poisons_of
from queries.record import CellExecutions, sampled_away

Event = dict[str, Any]

_PROCESS: Final = 1
_DEVICE, _HOST, _IN_FLIGHT = 1, 2, 3
_LANES: Final = {_DEVICE: "GPU", _HOST: "host, until submission", _IN_FLIGHT: "submission to observed completion"}
_NS_PER_US: Final = 1000


def trace_of(
    recorded: CellExecutions, diagnosis: Diagnosis | None = None, marks: Iterable[Mark] = ()
) -> dict[str, Any]:
    """One cell as a trace, ready for `json.dump`.

    Args:
        recorded: Its executions.
        diagnosis: What was found; the poisoning executions are marked.
        marks: What people noted about it. One from before the cell stands at its beginning and says so, for
            the timeline would else be mostly empty.
    """
    executions = recorded.executions
    zero_ns = executions[0].started_at
    events = [
        *_lanes(recorded),
        *_sampled_away(recorded.executions_dropped),
        *itertools.chain.from_iterable(_device(one, zero_ns) for one in executions),
        *_host(executions, zero_ns),
        *itertools.chain.from_iterable(_in_flight(one, zero_ns) for one in executions),
        *_estimates(executions, zero_ns),
        *_queue_depth(executions, zero_ns),
        *(_poison(poison, zero_ns) for poison in (poisons_of(diagnosis) if diagnosis else ())),
        *(_noted(mark, zero_ns) for mark in marks),
    ]
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "service_instance_id": recorded.engine.service_instance_id,
            "host_name": recorded.engine.host_name,
            "cell": recorded.cell,
            "executions_dropped": recorded.executions_dropped,
            "zero_unix_ns": str(zero_ns),
        },
    }


def device_start_ns(execution: GraphExecution) -> int:
    """When it began on the device; without the device's clock, as if it ended when its completion was observed."""
    if execution.graph_gpu_start_offset_ns is not None:
        return execution.started_at + execution.graph_gpu_start_offset_ns
    return execution.started_at + execution.duration_ns - execution.graph_gpu_time_ns


def _lanes(recorded: CellExecutions) -> Iterator[Event]:
    engine = recorded.engine
    name = f"{engine.host_name or engine.service_instance_id}, cell {recorded.cell}"
    yield {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": name}}
    for lane, words in _LANES.items():
        yield {"ph": "M", "pid": _PROCESS, "tid": lane, "name": "thread_name", "args": {"name": words}}
        yield {"ph": "M", "pid": _PROCESS, "tid": lane, "name": "thread_sort_index", "args": {"sort_index": lane}}


def _device(execution: GraphExecution, zero_ns: int) -> Iterator[Event]:
    began = device_start_ns(execution)
    yield _slice(_DEVICE, execution.graph_name, execution.graph_kind, began - zero_ns, execution.graph_gpu_time_ns) | {
        "args": _recorded(execution)
    }


def _host(executions: Sequence[GraphExecution], zero_ns: int) -> Iterator[Event]:
    """From the instant that a round could be planned, the later of the submission before it and of the last
    completion observed by then, to its submission: planning, and whatever held the host up."""
    submitted_before = executions[0].started_at
    in_flight: list[int] = []
    for execution in executions:
        observed = [instant for instant in in_flight if instant <= execution.started_at]
        in_flight = [instant for instant in in_flight if instant > execution.started_at]
        free_at = max([submitted_before, *observed])
        if not execution.graph_after_idle and execution.started_at > free_at:
            yield _slice(
                _HOST,
                f"plan {execution.graph_name}",
                "host",
                free_at - zero_ns,
                execution.started_at - free_at,
            ) | {"args": {"graph_sequence": execution.graph_sequence}}
        in_flight.append(execution.started_at + execution.duration_ns)
        submitted_before = execution.started_at


def _in_flight(execution: GraphExecution, zero_ns: int) -> Iterator[Event]:
    """Two submissions overlap, so these are asynchronous events."""
    shared = {
        "cat": "submission",
        "name": execution.graph_name,
        "id": execution.graph_sequence,
        "pid": _PROCESS,
        "tid": _IN_FLIGHT,
    }
    submitted = execution.started_at - zero_ns
    yield {"ph": "b", "ts": submitted / _NS_PER_US, **shared}
    yield {"ph": "e", "ts": (submitted + execution.duration_ns) / _NS_PER_US, **shared}


def _estimates(executions: Iterable[GraphExecution], zero_ns: int) -> Iterator[Event]:
    """What every candidate was charged, where that changed."""
    charged: dict[str, int] = {}
    for execution in executions:
        candidates = zip(execution.scheduler_candidate_graphs, execution.scheduler_candidate_estimates_ns, strict=False)
        for graph, estimate_ns in candidates:
            if charged.get(graph) != estimate_ns:
                charged[graph] = estimate_ns
                yield _counter(f"estimate {graph}", "ms", execution.started_at - zero_ns, estimate_ns / 1e6)


def _queue_depth(executions: Iterable[GraphExecution], zero_ns: int) -> Iterator[Event]:
    for execution in executions:
        if execution.graph_queue_depth is not None:
            yield _counter("queue depth", "submissions", execution.started_at - zero_ns, execution.graph_queue_depth)


def _poison(poison: Poison, zero_ns: int) -> Event:
    return {
        "ph": "i",
        "s": "p",
        "name": f"{poison.graph}: estimate {poison.estimate_before_ns / 1e6:.1f} to {poison.estimate_after_ns / 1e6:.1f} ms",
        "cat": "estimate_inflation",
        "ts": (poison.at_ns - zero_ns) / _NS_PER_US,
        "pid": _PROCESS,
        "tid": _DEVICE,
        "args": {"graph_sequence": poison.sequence, "span_id": poison.span_id},
    }


def _sampled_away(executions_dropped: int) -> Iterator[Event]:
    if executions_dropped:
        yield {
            "ph": "i",
            "s": "g",
            "name": sampled_away(executions_dropped),
            "cat": "sampling",
            "ts": 0,
            "pid": _PROCESS,
            "tid": _DEVICE,
            "args": {"executions_dropped": executions_dropped},
        }


def _noted(mark: Mark, zero_ns: int) -> Event:
    after_ns = after_began_ns(mark, zero_ns)
    return {
        "ph": "i",
        "s": "g",
        "name": mark.text if after_ns >= 0 else f"{placed(mark, zero_ns)}: {mark.text}",
        "cat": "annotation",
        "ts": max(after_ns, 0) / _NS_PER_US,
        "pid": _PROCESS,
        "tid": _DEVICE,
        "args": {"at": mark.at.isoformat(), "about": mark.about, "author": mark.author},
    }


def _slice(lane: int, name: str, category: str, since_ns: int, length_ns: int) -> Event:
    return {
        "ph": "X",
        "pid": _PROCESS,
        "tid": lane,
        "name": name,
        "cat": category,
        "ts": since_ns / _NS_PER_US,
        "dur": length_ns / _NS_PER_US,
    }


def _counter(name: str, unit: str, at_ns: int, value: float) -> Event:
    return {"ph": "C", "pid": _PROCESS, "name": name, "ts": at_ns / _NS_PER_US, "args": {unit: value}}


def _recorded(execution: GraphExecution) -> dict[str, Any]:
    """Every field that was recorded, by its column's name."""
    return {name: value for name, value in execution._asdict().items() if value not in (None, "", ())}

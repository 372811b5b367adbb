"""One trace file as engine instances with their executions, ready to be sent."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from engine_hooks.adapters.kineto.errors import NothingToImportError, WrongShiftError
from engine_hooks.adapters.kineto.launches import Launches, launches_of
from engine_hooks.adapters.kineto.trace import Trace
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.contract.validation import refusal

SHIFT_TO_NOW: Final = "now"
SHIFT_TO_BASE: Final = "base"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EngineInstance(NamedTuple):
    """The executions of one device of one file, in the order of launch."""

    resource: EngineResource
    device: int
    executions: tuple[GraphExecution, ...]


class ImportedTrace(NamedTuple):
    """What one file holds, and what was left out of it."""

    path: Path
    instances: tuple[EngineInstance, ...]
    skipped: Mapping[str, int]
    """Launches that became no execution, by reason."""
    operations: int
    """Device operations in the file, those outside graphs too."""
    operations_without_launch: int
    """Of these, the ones whose launch call the file does not hold."""


class Shift(NamedTuple):
    """Where a trace's times are moved to. Neither set: they stay as they are."""

    end_at: int | None = None
    """Unix ns of the end of the file's last execution."""
    by_base: bool = False
    """Add the file's `baseTimeNanoseconds`, which newer profilers count from."""


UNMOVED: Final = Shift()


def shift_of(text: str | None, now_ns: int) -> Shift:
    """A shift from `--shift-to`: nothing, `now`, `base`, or an ISO 8601 time (UTC where it names no zone).

    Raises:
        WrongShiftError: it is none of these.
    """
    if text is None or text == SHIFT_TO_BASE:
        return Shift(by_base=text == SHIFT_TO_BASE)
    if text == SHIFT_TO_NOW:
        return Shift(now_ns)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise WrongShiftError(
            f"--shift-to {text}: give {SHIFT_TO_NOW}, {SHIFT_TO_BASE} or a time such as 2026-11-29T12:00:00Z"
        ) from error
    elapsed = moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH
    return Shift((elapsed.days * 86_400 + elapsed.seconds) * 1_000_000_000 + elapsed.microseconds * 1_000)


def imported(
    path: Path, kind: GraphKind, shift: Shift = UNMOVED, on_progress: Callable[[int], None] = lambda _: None
) -> ImportedTrace:
    """A file's graph executions. The same file, kind and moved times give the same result, wherever the file lies.

    Raises:
        TraceUnreadableError, TraceMalformedError: see `Trace`.
        NothingToImportError: it holds no graph launch with device operations.
        WrongShiftError: `base` is asked for and the file has none.
    """
    trace = Trace(path, on_progress)
    launches = launches_of(trace, kind)
    if not launches.by_device:
        raise NothingToImportError(_nothing(trace, launches))
    shift_ns = _shift_ns(trace, launches, shift)
    skipped: Counter[str] = Counter(launches.skipped)
    instances = []
    for device, executions in launches.by_device.items():
        resource = _resource(trace, device, kind, shift_ns)
        kept = []
        for execution in executions:
            moved = execution._replace(started_at=execution.started_at + shift_ns)
            if reason := refusal(moved, resource):
                skipped[reason] += 1
            else:
                kept.append(moved)
        instances.append(EngineInstance(resource, device, tuple(kept)))
    return ImportedTrace(path, tuple(instances), skipped, launches.operations, launches.operations_without_launch)


def _nothing(trace: Trace, launches: Launches) -> str:
    if not trace.launches:
        return (
            f"{trace.path} holds no graph launch (cudaGraphLaunch, hipGraphLaunch) among its {trace.event_count:,} "
            "events: profile the engine while it runs graphs, with the GPU's activities recorded"
        )
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in launches.skipped.items())
    return f"{trace.path} holds {len(trace.launches):,} graph launches, none of them usable: {reasons}"


def _shift_ns(trace: Trace, launches: Launches, shift: Shift) -> int:
    if shift.by_base:
        base = _first(trace.header, "baseTimeNanoseconds")
        if not base.isdecimal():
            raise WrongShiftError(f"--shift-to {SHIFT_TO_BASE}: {trace.path} has no baseTimeNanoseconds")
        return int(base)
    if shift.end_at is None:
        return 0
    ends = (run.started_at + run.duration_ns for executions in launches.by_device.values() for run in executions)
    return shift.end_at - max(ends)


def _resource(trace: Trace, device: int, kind: GraphKind, shift_ns: int) -> EngineResource:
    """An instance that is the same for the same content: its id is a digest, and the file's name is not in it."""
    identity = hashlib.sha256(f"{trace.content_digest} {kind} {shift_ns}".encode()).hexdigest()[:16]
    return EngineResource(
        service_instance_id=f"kineto-{identity}-gpu{device}",
        service_name="kineto",
        gpu_ids=(str(device),),
        engine_attributes={name: value for name, value in _facts(trace, device, shift_ns).items() if value},
    )


def _facts(trace: Trace, device: int, shift_ns: int) -> dict[str, str]:
    header = trace.header
    return {
        "trace_sha256": trace.content_digest,
        "trace_name": _first(header, "traceName"),
        "trace_id": _first(header, "trace_id"),
        "trace_base_time_ns": _first(header, "baseTimeNanoseconds"),
        "trace_shift_ns": str(shift_ns) if shift_ns else "",
        "distributed_rank": _first(header, "distributedInfo.rank"),
        "distributed_world_size": _first(header, "distributedInfo.world_size"),
        "distributed_backend": _first(header, "distributedInfo.backend"),
        "gpu_name": _gpu_name(header, device),
    }


def _gpu_name(header: Mapping[str, list[Any]], device: int) -> str:
    """The device's own name; where its number is not listed (ROCm counts agents), the one name that all share."""
    names = header.get("deviceProperties.item.name", [])
    by_id = dict(zip(header.get("deviceProperties.item.id", []), names, strict=False))
    shared = {str(name) for name in names}
    return str(by_id.get(device, shared.pop() if len(shared) == 1 else ""))


def _first(header: Mapping[str, list[Any]], prefix: str) -> str:
    values = header.get(prefix)
    return "" if not values or values[0] is None else str(values[0])

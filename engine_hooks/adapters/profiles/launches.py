"""From the columns of a profile to executions: which operations a launch caused, and what was pending before it.

Definitions (`docs/importing.md`):
    GPU time      first start to last end of the device operations with the launch's correlation id
    duration      start of the launch call to that last end
    wall time     GPU time + the time in which the whole device was idle between the end of what the graph
                  had to follow and its own start; from the launch call where it followed nothing (`after_idle`)
    queue depth   submissions to the device called earlier and not ended when the launch was called
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from engine_hooks.adapters.profiles.annotations import enclosing_names
from engine_hooks.adapters.profiles.columns import LaunchCall, Profile, Skip
from engine_hooks.adapters.profiles.devices import Device, Run
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GpuTimeSource, GraphKind

UNNAMED: Final = "graph"
SIGNATURE_DIGITS: Final = 4


class PlaceLaunches(NamedTuple):
    """The graph executions of one place, in the order of launch."""

    executions: list[GraphExecution]
    device_busy_ns: int
    """Union of all its operations, those outside graphs too."""
    device_span_ns: int
    """From its first operation's start to its last one's end; what is not busy of it is idle."""


class Launches(NamedTuple):
    """The graph executions of one profile, and what was left out."""

    by_place: dict[int, PlaceLaunches]
    skipped: Counter[Skip]
    operations: int
    operations_without_launch: int


def launches_of(profile: Profile, kind: GraphKind) -> Launches:
    """Every graph launch of a profile as an execution, by place, in the order of launch. Times as the file has them."""
    calls, skipped = _distinct(profile.launches)
    annotations = enclosing_names(profile.annotations, calls)
    names = _GraphNames(profile)
    by_place: dict[int, PlaceLaunches] = {}
    without_launch = 0
    ran: set[int] = set()
    for place in sorted(profile.places):  # One at a time: a device takes as much memory as its columns.
        device = Device(profile, place, (call.correlation for call in calls))
        without_launch += device.operations_without_launch
        executions: list[GraphExecution] = []
        for call, annotation in zip(calls, annotations, strict=True):
            if run := device.run_of(call.correlation):
                ran.add(call.correlation)
                graph_name = names.of(annotation, run)
                executions.append(
                    _execution(call, run, device, graph_name=graph_name, kind=kind, sequence=len(executions))
                )
        if executions:
            by_place[place] = PlaceLaunches(executions, device.busy.total_ns, device.busy.span_ns)
    skipped.update(
        profile.unusable.get(call.correlation, Skip.NO_OPERATIONS) for call in calls if call.correlation not in ran
    )
    return Launches(by_place, skipped, len(profile.operations.started_at), without_launch)


def _execution(
    call: LaunchCall, run: Run, device: Device, *, graph_name: str, kind: GraphKind, sequence: int
) -> GraphExecution:
    free_at = device.free_at(run)
    waiting_since = min(call.started_at, run.started_at) if free_at is None else free_at
    gpu_time_ns = run.ended_at - run.started_at
    return GraphExecution(
        graph_name=graph_name,
        graph_kind=kind,
        graph_sequence=sequence,
        graph_gpu_time_ns=gpu_time_ns,
        graph_wall_time_ns=gpu_time_ns + device.busy.idle_between(waiting_since, run.started_at),
        started_at=call.started_at,
        duration_ns=run.ended_at - call.started_at,
        graph_gpu_start_offset_ns=run.started_at - call.started_at,
        graph_gpu_time_source=GpuTimeSource.PROFILER,
        graph_queue_depth=device.queue_depth(call.started_at, run),
        graph_after_idle=free_at is None,
    )


def _distinct(launches: Iterable[LaunchCall]) -> tuple[list[LaunchCall], Counter[Skip]]:
    """Launches in the order of their calls, one for each correlation id.

    A runtime call and the driver call inside it may both be recorded under one id: the outer one counts.
    """
    by_correlation: dict[int, list[LaunchCall]] = {}
    for launch in sorted(launches, key=lambda call: (call.started_at, -call.ended_at, call.correlation)):
        by_correlation.setdefault(launch.correlation, []).append(launch)
    skipped: Counter[Skip] = Counter()
    calls = []
    for outer, *others in by_correlation.values():
        if all(other.thread == outer.thread and other.ended_at <= outer.ended_at for other in others):
            calls.append(outer)
        else:
            skipped[Skip.AMBIGUOUS] += 1 + len(others)
    return calls, skipped


class _GraphNames:
    """Equal graphs, equal names: in every file where the nodes are known, in one process where only an id is."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[tuple[int, ...], str] = {}

    def of(self, annotation: str, run: Run) -> str:
        if run.shapes not in self._known:
            self._known[run.shapes] = self._identity(run.shapes)
        return f"{annotation or UNNAMED}-{self._known[run.shapes]}"

    def _identity(self, shapes: tuple[int, ...]) -> str:
        whole = [self._profile.whole_graphs[shape] for shape in shapes if shape in self._profile.whole_graphs]
        if whole:
            return f"id-{whole[0]}"
        text = "\n".join(sorted(self._profile.shapes[shape] for shape in shapes))
        return f"{len(shapes)}-ops-{hashlib.sha256(text.encode()).hexdigest()[:SIGNATURE_DIGITS]}"

"""One profile as engine instances with their executions, ready to be sent."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from engine_hooks.adapters.profiles.columns import Place, Profile
from engine_hooks.adapters.profiles.errors import NothingToImportError, WrongShiftError
from engine_hooks.adapters.profiles.launches import Launches, PlaceLaunches, launches_of
from engine_hooks.adapters.profiles.shifting import SHIFT_TO_BASE, UNMOVED, Shift
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.contract.validation import refusal


class EngineInstance(NamedTuple):
    """The executions of one device of one process of one file, in the order of launch."""

    resource: EngineResource
    device: int
    executions: tuple[GraphExecution, ...]
    device_busy_ns: int
    """Union over the device's operations of all streams, those outside graphs too."""
    device_span_ns: int
    """From its first operation's start to its last one's end; what is not busy of it is idle."""


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
    operations_left_out: Mapping[str, int]
    """Device operations besides these that could not be used, by reason."""


def imported_profile(profile: Profile, kind: GraphKind, shift: Shift = UNMOVED) -> ImportedTrace:
    """A profile's graph executions. The same content, kind and moved times give the same result, wherever it lies.

    Raises:
        NothingToImportError: it holds no graph launch with device operations, or none that the contract takes.
        WrongShiftError: `base` is asked for and the file has none.
    """
    launches = launches_of(profile, kind)
    skipped: Counter[str] = Counter(launches.skipped)
    if not launches.by_place:
        raise NothingToImportError(_nothing(profile, skipped))
    shift_ns = _shift_ns(profile, launches, shift)
    instances = tuple(
        _instance(_resource(profile, profile.places[place], kind, shift_ns), profile.places[place], found, skipped)
        for place, found in _moved(launches.by_place, shift_ns).items()
    )
    if not any(instance.executions for instance in instances):
        raise NothingToImportError(_nothing(profile, skipped))
    return ImportedTrace(
        profile.path,
        instances,
        skipped,
        launches.operations,
        launches.operations_without_launch,
        {str(reason): count for reason, count in profile.left_out.items()},
    )


def _moved(by_place: Mapping[int, PlaceLaunches], shift_ns: int) -> dict[int, PlaceLaunches]:
    return {
        place: found._replace(
            executions=[run._replace(started_at=run.started_at + shift_ns) for run in found.executions]
        )
        for place, found in by_place.items()
    }


def _instance(resource: EngineResource, place: Place, found: PlaceLaunches, skipped: Counter[str]) -> EngineInstance:
    """Without the executions that break the contract; these are added to `skipped`."""
    kept = []
    for execution in found.executions:
        if reason := refusal(execution, resource):
            skipped[reason] += 1
        else:
            kept.append(execution)
    return EngineInstance(resource, place.device, tuple(kept), found.device_busy_ns, found.device_span_ns)


def _nothing(profile: Profile, skipped: Mapping[str, int]) -> str:
    if not profile.launches:
        return (
            f"{profile.path} holds no graph launch (cudaGraphLaunch, hipGraphLaunch) among its {profile.contents}: "
            "profile the engine while it runs graphs, with the GPU's activities recorded"
        )
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    return f"{profile.path} holds {len(profile.launches):,} graph launches, none of them usable: {reasons}"


def _shift_ns(profile: Profile, launches: Launches, shift: Shift) -> int:
    if shift.by_base:
        if profile.base_time_ns is None:
            raise WrongShiftError(f"--shift-to {SHIFT_TO_BASE}: {profile.path} has no {profile.base_time_name}")
        return profile.base_time_ns
    if shift.end_at is None:
        return 0
    ends = (run.started_at + run.duration_ns for found in launches.by_place.values() for run in found.executions)
    return shift.end_at - max(ends)


def _resource(profile: Profile, place: Place, kind: GraphKind, shift_ns: int) -> EngineResource:
    """An instance that is the same for the same content: its id is a digest, and the file's name is not in it."""
    identity = hashlib.sha256(f"{profile.content_digest} {kind} {shift_ns}".encode()).hexdigest()[:16]
    facts = {
        "trace_sha256": profile.content_digest,
        "trace_shift_ns": str(shift_ns) if shift_ns else "",
        **profile.facts,
        **place.facts,
    }
    return EngineResource(
        service_instance_id=f"{profile.service_name}-{identity}-{place.label}",
        service_name=profile.service_name,
        gpu_ids=(place.gpu_id,),
        engine_attributes={name: value for name, value in facts.items() if value},
    )

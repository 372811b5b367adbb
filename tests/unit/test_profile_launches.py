"""Which operations a launch is given, for any launches and operations."""

from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from engine_hooks.adapters.profiles.columns import LaunchCall, Place, Profile, Skip
from engine_hooks.adapters.profiles.launches import Launches, launches_of
from engine_hooks.contract.names import GraphKind

PLACES = (0, 1)


class Operation(NamedTuple):
    correlation: int | None
    started_at: int
    length: int
    place: int
    stream: int


IDS = st.integers(0, 8)
LAUNCHES = st.dictionaries(IDS, st.tuples(st.integers(0, 90), st.integers(0, 9)), max_size=6)
"""Start and length of the call, by correlation id."""
OPERATIONS = st.lists(
    st.builds(
        Operation,
        st.none() | IDS,
        st.integers(0, 100),
        st.integers(0, 20),
        st.sampled_from(PLACES),
        st.integers(1, 2),
    ),
    max_size=20,
)


def launches(calls: dict[int, tuple[int, int]], operations: list[Operation]) -> Launches:
    profile = Profile(Path("made"), "kineto")
    for correlation, (start, length) in calls.items():
        profile.launches.append(LaunchCall(correlation, start, start + length, ("1", "1")))
        profile.host_calls.correlation.append(correlation)
        profile.host_calls.started_at.append(start)
    for correlation, start, length, place, stream in operations:
        profile.operations.append(start, start + length, correlation, place=place, stream=stream, shape=0)
    profile.shapes = ["gemm"]
    profile.places = {
        place: Place(place, f"gpu{place}", str(place), {}) for place in PLACES if place in profile.operations.place
    }
    return launches_of(profile, GraphKind.MIXED)


@given(LAUNCHES, OPERATIONS)
def test_each_launch_has_exactly_the_operations_of_its_id(
    calls: dict[int, tuple[int, int]], operations: list[Operation]
) -> None:
    found = launches(calls, operations)
    expected = sorted(
        (
            place,
            calls[correlation][0],
            min(o.started_at for o in own),
            max(o.started_at + o.length for o in own),
            len(own),
        )
        for correlation in calls
        for place in PLACES
        if (own := [o for o in operations if (o.correlation, o.place) == (correlation, place)])
    )
    actual = sorted(
        (
            place,
            run.started_at,
            run.started_at + (run.graph_gpu_start_offset_ns or 0),
            run.started_at + run.duration_ns,
            int(run.graph_name.split("-")[1]),
        )
        for place, own in found.by_place.items()
        for run in own.executions
    )
    assert actual == expected


@given(LAUNCHES, OPERATIONS)
def test_every_launch_and_operation_is_accounted_for(
    calls: dict[int, tuple[int, int]], operations: list[Operation]
) -> None:
    found = launches(calls, operations)
    used = {o.correlation for o in operations}
    assert found.skipped[Skip.NO_OPERATIONS] == sum(correlation not in used for correlation in calls)
    assert found.operations == len(operations)
    assert found.operations_without_launch == sum(o.correlation not in calls for o in operations)
    for own in found.by_place.values():
        assert [run.graph_sequence for run in own.executions] == list(range(len(own.executions)))


@given(LAUNCHES, OPERATIONS)
def test_idle_time_charged_to_graphs_is_idle_time_of_the_device(
    calls: dict[int, tuple[int, int]], operations: list[Operation]
) -> None:
    """No moment is charged twice, however streams interleave; before the first operation nothing is known of it."""
    for place, own in launches(calls, operations).by_place.items():
        first = min(o.started_at for o in operations if o.place == place)
        charged = sum(
            run.graph_wall_time_ns - run.graph_gpu_time_ns
            for run in own.executions
            if run.started_at + (run.graph_gpu_start_offset_ns or 0) > first and not run.graph_after_idle
        )
        assert 0 <= charged <= own.device_span_ns - own.device_busy_ns


def test_of_graphs_that_start_together_one_is_charged_the_idle_time_before_them() -> None:
    place = PLACES[0]
    before = Operation(None, 0, 1, place, 1)
    together = [Operation(0, 11, 5, place, 1), Operation(1, 11, 7, place, 2)]
    found = launches({0: (0, 0), 1: (0, 0)}, [before, *together]).by_place[place]
    assert [run.graph_wall_time_ns - run.graph_gpu_time_ns for run in found.executions] == [10, 0]

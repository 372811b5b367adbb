"""What matters of a profile, in columns: 48 bytes a device operation, 16 a host call, nothing of the rest. Times in ns."""

import re
from array import array
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

GRAPH_LAUNCH: Final = re.compile(r"(cuda|hip|cu)GraphLaunch(_\w+)?")
"""The runtime's and the driver's call, with CUPTI's suffixes (`_v10000`, `_ptsz`)."""


class Skip(StrEnum):
    """Why a launch became no execution."""

    NO_OPERATIONS = "no device operations"
    """The profile ended before the graph ran, or its device was not recorded."""
    AMBIGUOUS = "correlation id used twice"
    """Processes that the file does not keep apart: whose operations these are cannot be told."""
    NO_TIME = "no device times"
    """The profiler could not collect when the graph ran."""
    NO_DEVICE = "starts on the host, device not recorded"


class LaunchCall(NamedTuple):
    """One call that launched a graph. Times in ns."""

    correlation: int
    started_at: int
    ended_at: int
    thread: tuple[str, str]
    """Process and thread, as the file names them."""


class Annotation(NamedTuple):
    """A range that the engine marked on one of its threads. Times in ns."""

    started_at: int
    ended_at: int
    name: str


class Place(NamedTuple):
    """Where operations ran: one device of one process, an engine instance of its own."""

    device: int
    """The device's number, as its process counts."""
    label: str
    """Tells the places of one file apart: `gpu0`, `pid4711-gpu0`."""
    gpu_id: str
    facts: Mapping[str, str]
    """What the file says of it; empty values are dropped."""


class DeviceOperations:
    """Kernels, copies, sets and graphs traced as one, a column for each field, in the file's order. Times in ns."""

    def __init__(self) -> None:
        self.started_at = array("q")
        self.ended_at = array("q")
        self.correlation = array("q")
        """Unique in the file, of every process. Operations without one have a negative number each."""
        self.place = array("q")
        """Key of `Profile.places`."""
        self.stream = array("q")
        self.shape = array("q")
        """Index into `Profile.shapes`."""

    def append(
        self, started_at: int, ended_at: int, correlation: int | None, *, place: int, stream: int, shape: int
    ) -> None:
        """Raises TypeError or OverflowError for what is no 64-bit integer."""
        self.correlation.append(-1 - len(self.started_at) if correlation is None else correlation)
        self.started_at.append(started_at)
        self.ended_at.append(ended_at)
        self.place.append(place)
        self.stream.append(stream)
        self.shape.append(shape)


class HostCalls:
    """Runtime and driver calls that carry a correlation id, graph launches among them. Times in ns."""

    def __init__(self) -> None:
        self.correlation = array("q")
        self.started_at = array("q")


class Profile:
    """One file, read whole by one of the readers. Times in ns, as the file has them unless a field says otherwise."""

    def __init__(self, path: Path, service_name: str) -> None:
        self.path = path
        self.service_name = service_name
        """The profiler's name: an imported instance has no deployment."""
        self.content_digest = ""
        """SHA-256 in hex: the same content is the same engine, however the file is named."""
        self.operations = DeviceOperations()
        self.host_calls = HostCalls()
        self.launches: list[LaunchCall] = []
        self.unusable: dict[int, Skip] = {}
        """Correlation ids of launches whose operations the file holds without a time or a device."""
        self.left_out: Counter[Skip] = Counter()
        """Device operations that could not be used, by reason; the columns do not have them."""
        self.annotations: dict[tuple[str, str], list[Annotation]] = {}
        self.shapes: list[str] = []
        """What distinguishes one operation from another besides its time: name, grid and block."""
        self.whole_graphs: dict[int, str] = {}
        """Shapes that are a whole graph, traced as one operation, with the graph's id in its process."""
        self.places: dict[int, Place] = {}
        self.facts: dict[str, str] = {}
        """What the file says of itself; empty values are dropped."""
        self.base_time_ns: int | None = None
        """What `--shift-to base` adds. None where the file does not say what its times count from."""
        self.base_time_name = ""
        self.contents = ""
        """How much there is, for the error that there is no launch: `3,000 events`."""

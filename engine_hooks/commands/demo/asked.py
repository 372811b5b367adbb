"""What a run of the demo was asked for."""

from enum import StrEnum
from typing import NamedTuple


class Clock(StrEnum):
    """What the times of the demo are; `engine.clock` of its resource."""

    WALL = "wall"
    PROCESSOR = "processor"
    """Host and device by the processor time each takes: what else the machine does is in none of it."""


class Asked(NamedTuple):
    """A run's name, and how it runs."""

    instance: str
    cell: str
    """'': windows of the calendar."""
    seconds: float
    """0: until it is stopped."""
    clock: Clock

"""Whether times are of the unit that they say, by what they are beside times that are surely nanoseconds.

A span's start and end are nanoseconds by OTLP. A GPU or wall time a thousand times below its
span's duration, execution after execution, is one in microseconds; an estimate so far from the
measured wall time likewise. A device start is held against what of the span is not GPU time, in which it lies:
the completion may be observed late, so that only what still fits there a thousandfold is told.
"""

from collections import Counter
from collections.abc import Iterator
from math import log10
from typing import Final, NamedTuple

from collector.conformance import rules
from collector.conformance.findings import Breach, Example
from engine_hooks.contract import names
from engine_hooks.contract.execution import GraphExecution

_EXECUTIONS_MIN: Final = 8
"""Fewer do not tell a unit from one long wait."""
_STEPS: Final = 20
"""Steps of a decade that ratios are counted by: 12 % each."""
_UNITS: Final = (("s", 9.0), ("ms", 6.0), ("µs", 3.0))
"""How many decades of nanoseconds a unit is."""
_RESEMBLES: Final = 0.5
"""By how many decades a time may be nearer to its reference, at the median, and still be told as one of a unit."""
_LIES_WITHIN: Final = 1 / _STEPS
"""The same of a time that is part of its reference: for the steps only."""


class _Compared(NamedTuple):
    """A time that may be of a wrong unit, beside one it should resemble."""

    attribute: str
    time_ns: int | None
    beside: str
    reference_ns: int
    slack_decades: float = _RESEMBLES


class _Ratios:
    """How a time of one graph compares with its reference: a histogram of decades."""

    def __init__(self, example: Example, slack_decades: float) -> None:
        self._counts: Counter[int] = Counter()
        self._slack_decades = slack_decades
        self.example = example

    def add(self, ratio: float) -> None:
        self._counts[round(log10(ratio) * _STEPS)] += 1

    @property
    def count(self) -> int:
        return self._counts.total()

    @property
    def unit(self) -> str | None:
        """The unit that the time is in, if it is another one than it says."""
        reached = self._median_decades + self._slack_decades
        return next((unit for unit, decades in _UNITS if reached >= decades), None)

    @property
    def _median_decades(self) -> float:
        passed = 0
        for step in sorted(self._counts):
            passed += self._counts[step]
            if passed * 2 >= self.count:
                return step / _STEPS
        return 0.0


class Units:
    """The times of one engine instance, by attribute and graph."""

    GRAPHS_MAX: Final = 256

    def __init__(self) -> None:
        self._ratios: dict[tuple[str, str], _Ratios] = {}

    def take(self, execution: GraphExecution, span: str) -> None:
        """Compare the times of one execution; `span` is how to find it again."""
        for compared in _compared(execution):
            if not compared.time_ns or compared.time_ns < 0 or compared.reference_ns <= 0:
                continue
            key = (compared.attribute, execution.graph_name)
            if key not in self._ratios:
                if len(self._ratios) >= self.GRAPHS_MAX:
                    continue
                value = f"{compared.time_ns} beside {compared.beside} of {compared.reference_ns} ns"
                self._ratios[key] = _Ratios(Example(span, value), compared.slack_decades)
            self._ratios[key].add(compared.reference_ns / compared.time_ns)

    def breaches(self) -> Iterator[tuple[Breach, str, int]]:
        """Each time that is of another unit, an example of it, and how many executions were compared."""
        for (attribute, _), ratios in self._ratios.items():
            if ratios.count < _EXECUTIONS_MIN:
                continue
            if ratios.unit is not None:
                value = f"{ratios.example.value}: looks like {ratios.unit}"
                yield Breach(rules.UNIT, attribute, value), ratios.example.span, ratios.count


def _compared(execution: GraphExecution) -> tuple[_Compared, ...]:
    duration, wall = execution.duration_ns, execution.graph_wall_time_ns
    # A wall time in a wrong unit is no reference for estimates: the larger of the two is nearer to the truth.
    measured = max(wall, execution.graph_gpu_time_ns) if wall * 300 > duration else duration
    return (
        _Compared(names.GRAPH_GPU_TIME_NS, execution.graph_gpu_time_ns, "a span", duration),
        _Compared(names.GRAPH_WALL_TIME_NS, wall, "a span", duration),
        _Compared(
            names.GRAPH_GPU_START_OFFSET_NS,
            execution.graph_gpu_start_offset_ns,
            "a span less its GPU time",
            duration - execution.graph_gpu_time_ns,
            _LIES_WITHIN,
        ),
        _Compared(names.SCHEDULER_ESTIMATE_NS, execution.scheduler_estimate_ns, "a measured time", measured),
        _Compared(
            names.SCHEDULER_CANDIDATE_ESTIMATES_NS,
            max(execution.scheduler_candidate_estimates_ns, default=None),
            "a measured time",
            measured,
        ),
    )

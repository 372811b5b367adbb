"""What a simulated engine is, and what happens to it: all of it data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from engine_hooks.contract.names import GraphKind
from engine_hooks.scheduler.graphs import DRAFTS_PER_LANE_MAX, Graph
from engine_hooks.scheduler.scheduler import SchedulerSettings
from engine_hooks.simulator.errors import SimulatorError

MS_NS = 1_000_000
S_NS = 1_000_000_000
PLAIN = Graph("decode", GraphKind.PLAIN_DECODE)
VERIFICATION_NS_PER_POSITION = 65_000
"""Device time of one more verified position, at any number of lanes."""
PLAIN_NS: Mapping[int, int] = MappingProxyType({1: 4_300_000, 8: 6_500_000, 16: 9_000_000, 32: 13_500_000})
SPECULATIVE_BASE_NS: Mapping[int, int] = MappingProxyType({1: 5_900_000, 8: 10_000_000, 16: 11_700_000, 32: 20_180_000})


class Rounds(StrEnum):
    """Which decoding rounds a disturbance meets."""

    SPECULATIVE = "speculative"
    ALL = "all"


@dataclass(frozen=True)
class Engine:
    """The engine itself: graphs with their true device times, host, workload. Times are nanoseconds."""

    lanes: int = 32
    graph_gpu_ns: Mapping[Graph, int] = field(default_factory=lambda: graphs_at(32))
    gpu_noise: float = 0.008
    """Standard deviation of a device time over its mean, from round to round."""
    gpu_speed: float = 1.0
    """Factor on every device time."""
    gpu_speed_sd: float = 0.03
    """Standard deviation of that factor from cell to cell."""
    planning_ns: int = 500_000
    """Median time in which the host plans a round."""
    planning_sigma: float = 0.3
    """Of the logarithm of the planning time."""
    slow_planning_sigma: float = 0.05
    """The same while the host is slowed down."""
    notify_ns: int = 100_000
    """From the end on the device until the host may observe it."""
    launch_ns: int = 100_000
    """From submission until the device may start."""
    request_tokens: int = 1500
    """Tokens of a request; each ends in one prefill of the next. 0: no prefills."""
    prefill_ns: int = 12_000_000
    prefill_graph: str = "prefill-2048"
    lane_acceptance_sd: float = 0.05
    cell_acceptance_sd: float = 0.004
    acceptance_by_depth: tuple[float, ...] = ()
    """Factor on acceptance at each depth, from the first draft of a lane on. Empty: the same at every depth."""


@dataclass(frozen=True)
class Conditions:
    """What holds for a stretch of time."""

    acceptance: float = 0.62
    """Chance that a draft is accepted once all before it in its lane were."""
    gpu_factor: float = 1.0
    """Factor on every device time: a clock that drifts."""
    graph_gpu_factor: Mapping[str, float] = field(default_factory=dict)
    """Factor on the device time of single graphs, by name."""
    host_factor: float = 0.0
    """Planning takes this many times the planned graph's device time. 0: as the engine's parameters say."""
    host_graphs: tuple[str, ...] = ()
    """If given, only planning of these graphs is slow."""
    host_planning_ns: int = 0
    """Planning takes this long. 0: as the engine's parameters say."""
    host_rounds: Rounds = Rounds.SPECULATIVE
    """Which rounds the slow host plans slowly."""
    graph_planning_ns: Mapping[str, int] = field(default_factory=dict)
    """Planning of single graphs takes this long, by name, whatever is said above."""
    grammar_lanes: int = 0
    """With any, every decoding round needs completion feedback."""
    prefill_rate_hz: float = 0.0
    """Prefills beyond those the requests bring, evenly spaced."""
    delay_rate_hz: float = 0.0
    """Stumbles of the host, at random."""
    delay_rounds: Rounds = Rounds.SPECULATIVE
    delay_median_ns: int = 60 * MS_NS
    delay_sigma: float = 0.4


class Phase(NamedTuple):
    """From `from_ns` on, until the next phase, these conditions hold."""

    from_ns: int
    conditions: Conditions


class Bursts(NamedTuple):
    """`delays` on consecutive decoding rounds, every `every_ns`, the first at `first_ns`."""

    delays: int
    every_ns: int
    first_ns: int
    rounds: Rounds = Rounds.ALL
    median_ns: int = 60 * MS_NS
    sigma: float = 0.4


class Pause(NamedTuple):
    """From `at_ns` on the engine has no work for `duration_ns`."""

    at_ns: int
    duration_ns: int


@dataclass(frozen=True)
class Scenario:
    """An engine, the conditions it meets one after another, and how long."""

    name: str
    engine: Engine = field(default_factory=Engine)
    phases: tuple[Phase, ...] = (Phase(0, Conditions()),)
    bursts: tuple[Bursts, ...] = ()
    pauses: tuple[Pause, ...] = ()
    duration_ns: int = 30 * S_NS
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    """`acceptance_prior` is replaced by the first phase's acceptance: the engine has long been running."""

    def __post_init__(self) -> None:
        starts = [phase.from_ns for phase in self.phases]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise SimulatorError(f"scenario {self.name}: phases must start at 0 and follow one another, not {starts}")
        if any(bursts.delays < 1 or bursts.every_ns < 1 for bursts in self.bursts):
            raise SimulatorError(f"scenario {self.name}: bursts need at least one delay and some time between them")
        if len(self.engine.acceptance_by_depth) not in (0, DRAFTS_PER_LANE_MAX):
            raise SimulatorError(
                f"scenario {self.name}: acceptance_by_depth needs {DRAFTS_PER_LANE_MAX} factors, one a depth, or none"
            )
        if self.duration_ns <= 0:
            raise SimulatorError(f"scenario {self.name}: the duration must be above 0, not {self.duration_ns} ns")

    @property
    def scheduler_settings(self) -> SchedulerSettings:
        """The scheduler's settings in this scenario."""
        return replace(self.scheduler, acceptance_prior=self.phases[0].conditions.acceptance)


def graphs_at(lanes: int, plain_ns: int | None = None, budgets: tuple[int, ...] | None = None) -> dict[Graph, int]:
    """Plain decode and speculative graphs of the published engine at 1, 8, 16 or 32 lanes, with their device times.

    Args:
        lanes: Sequences in the batch.
        plain_ns: Device time of plain decode, if another than the published one.
        budgets: Verification budgets, if others than the usual ones.

    Raises:
        SimulatorError: nothing was published for that many lanes.
    """
    if lanes not in PLAIN_NS:
        raise SimulatorError(f"device times are known at {', '.join(map(str, PLAIN_NS))} lanes, not at {lanes}")
    graphs = {PLAIN: PLAIN_NS[lanes] if plain_ns is None else plain_ns}
    for budget in usual_budgets(lanes) if budgets is None else budgets:
        graph = Graph(f"P{budget}", GraphKind.SPECULATIVE, budget)
        graphs[graph] = SPECULATIVE_BASE_NS[lanes] + VERIFICATION_NS_PER_POSITION * budget
    return graphs


def usual_budgets(lanes: int) -> tuple[int, ...]:
    """64, 108 and 128, as far as eight positions a lane (its own token and seven drafts) can fill them."""
    full = 8 * lanes
    return (64, 108, 128) if full >= 128 else (full // 2, full)


def steady(**conditions: Any) -> tuple[Phase, ...]:
    """The same conditions from beginning to end."""
    return (Phase(0, Conditions(**conditions)),)

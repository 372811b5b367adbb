"""A simulated engine paced to the wall clock: something live to look at."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.simulator.cell import cost_model_for
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.parameters import MS_NS, S_NS, Rounds, Scenario, steady
from engine_hooks.simulator.recording import CellLabels

STUMBLE_NS: Final = 60 * MS_NS
"""What the published incident's host lost in one stumble."""
STUMBLES_AT_S: Final = (5.0, 5.7, 6.4, 7.1, 7.8)
"""Early stumbles. Two in speculative rounds fool `exposed_mean`: the first about P128, the next about P108, which
takes its place. The rest are for a round that was not speculative when a stumble came."""
STUMBLE_RATE_HZ: Final = 0.04
"""Stumbles later on, at random. Two windows in five are then stuck under `exposed_mean`, none under `drained_share`."""
OFF_BY_MAX_NS: Final = S_NS
"""Further from the calendar than this, and the engine starts again from the present instead of hurrying after it."""


class WallClock:
    """Holds a virtual clock to the calendar.

    Waits by the monotonic clock. A process that was suspended, a machine too slow for its
    engine, or a calendar that was set moves the place of virtual time 0 instead.
    """

    def __init__(
        self,
        unix_clock_ns: Callable[[], int] = time.time_ns,
        monotonic_clock_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._unix_clock_ns = unix_clock_ns
        self._monotonic_clock_ns = monotonic_clock_ns
        self._sleep = sleep
        self._place(0)

    def wait_until(self, virtual_ns: int) -> None:
        """Return once the calendar has reached this virtual time."""
        wait_ns = self._monotonic_of_0_ns + virtual_ns - self._monotonic_clock_ns()
        if wait_ns > 0:
            self._sleep(wait_ns / S_NS)
        if abs(self._unix_clock_ns() - self.unix_of(virtual_ns)) > OFF_BY_MAX_NS:
            self._place(virtual_ns)

    def unix_of(self, virtual_ns: int) -> int:
        """The Unix time, in ns, of a virtual time."""
        return self._unix_of_0_ns + virtual_ns

    def _place(self, virtual_ns: int) -> None:
        self._unix_of_0_ns = self._unix_clock_ns() - virtual_ns
        self._monotonic_of_0_ns = self._monotonic_clock_ns() - virtual_ns


class LiveEngine:
    """One simulated engine at 32 lanes that runs as fast as the wall clock goes, until it is told to stop."""

    def __init__(
        self,
        policy: str,
        seed: int,
        record: Callable[[GraphExecution], None],
        *,
        stumbles_at_s: Iterable[float] = STUMBLES_AT_S,
        stumble_rate_hz: float = STUMBLE_RATE_HZ,
        clock: WallClock | None = None,
    ) -> None:
        """Set up; the clock runs from here on.

        Args:
            policy: A cost model's name, or the oracle's.
            seed: Of noise, stumbles and drafts.
            record: Takes each execution once its completion was observed.
            stumbles_at_s: When the host stumbles for certain, if it plans a speculative round then.
            stumble_rate_hz: How often it stumbles besides. 0: never.
            clock: What virtual time is held to.

        Raises:
            UnknownCostModelError: no cost model has that name.
        """
        scenario = Scenario("live", phases=steady(delay_rate_hz=stumble_rate_hz, delay_median_ns=STUMBLE_NS))
        self.scenario = scenario
        self._record = record
        self._stopping = False
        self._clock = clock or WallClock()
        self._engine = SimulatedEngine(
            scenario,
            cost_model_for(policy, scenario, seed),
            seed,
            on_execution=self._observed,
            labels=CellLabels(epoch_unix_ns=0),
            pace=self._clock.wait_until,
        )
        for at_s in stumbles_at_s:
            self._engine.delay_at(int(at_s * S_NS), STUMBLE_NS, Rounds.SPECULATIVE)

    def run(self, for_s: float = 0) -> None:
        """Run for so many seconds, or until stopped. 0: until stopped."""
        until_ns = for_s * S_NS or float("inf")
        step, engine = self._engine.step, self._engine
        while not self._stopping and engine.now_ns < until_ns:
            step()

    def stop(self) -> None:
        """End with the round that is being planned, a fraction of a second from now. A signal handler may call it."""
        self._stopping = True

    def _observed(self, execution: GraphExecution) -> None:
        self._record(execution._replace(started_at=self._clock.unix_of(execution.started_at)))

"""Randomness of a simulation, drawn in bulk, one stream for each purpose.

Streams do not depend on what the scheduler does, so that two models meet the same noise,
the same delays and the same luck with their drafts.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine_hooks.scheduler.graphs import Drafts
from engine_hooks.simulator.delays import Delay
from engine_hooks.simulator.parameters import Bursts, Conditions, Scenario

BLOCK = 2048
Floats = NDArray[np.float64]
Outcome = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Tokens emitted by one round, and the trials and hits of its drafts by depth."""


class Draws:
    """Every random quantity of one cell."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        engine = scenario.engine
        cell, gpu, planning, slow, delays, drafts = np.random.default_rng([seed, 0x7AC0]).spawn(6)
        self.gpu_speed = engine.gpu_speed * (1 + engine.gpu_speed_sd * cell.standard_normal())
        cell_offset = engine.cell_acceptance_sd * cell.standard_normal()
        lane_offsets = engine.lane_acceptance_sd * cell.standard_normal(engine.lanes)
        self.outcomes = DraftOutcomes(drafts, engine.lanes, cell_offset + lane_offsets, engine.acceptance_by_depth)
        self.gpu_noise = in_blocks(lambda: 1 + engine.gpu_noise * gpu.standard_normal(BLOCK))
        self.planning_ns = in_blocks(lambda: engine.planning_ns * planning.lognormal(0, engine.planning_sigma, BLOCK))
        self.slow_planning = in_blocks(lambda: slow.lognormal(0, engine.slow_planning_sigma, BLOCK))
        self.delays = delays_of(scenario, delays)


def in_blocks(draw: Callable[[], Floats]) -> Callable[[], float]:
    """A function that gives one value after another out of blocks that `draw` makes."""

    def values() -> Iterator[float]:
        while True:
            yield from draw().tolist()

    return values().__next__


class DraftOutcomes:
    """Accepted drafts, round after round: in each lane the leading run of successes at that lane's rate."""

    def __init__(
        self, generator: np.random.Generator, lanes: int, offsets: Floats, by_depth: tuple[float, ...] = ()
    ) -> None:
        self._generator = generator
        self._lanes = lanes
        self._offsets = offsets
        self._by_depth = np.asarray(by_depth)
        self._acceptance = 0.0
        self._row = BLOCK
        self._log_luck: Floats = np.empty((0, lanes))
        self._runs: Any = None
        self._tables: dict[Drafts, list[Outcome]] = {}

    def accept_at(self, acceptance: float) -> None:
        """From the next round on drafts are accepted at this rate."""
        self._acceptance = acceptance
        self._update_runs()

    def next(self, drafts: Drafts) -> Outcome:
        """The outcome of the next speculative round."""
        row = self._row
        if row == BLOCK:
            self._log_luck = np.log(1 - self._generator.random((BLOCK, self._lanes)))
            self._update_runs()
            row = 0
        self._row = row + 1
        table = self._tables.get(drafts)
        if table is None:
            table = self._tables[drafts] = self._table(drafts)
        return table[row]

    def _update_runs(self) -> None:
        self._runs = self._runs_by_depth() if len(self._by_depth) else self._runs_at_one_rate()
        self._tables.clear()

    def _runs_at_one_rate(self) -> Any:
        rates = np.clip(self._acceptance + self._offsets, 1e-9, 1 - 1e-9)
        return np.floor(self._log_luck / np.log(rates))

    def _runs_by_depth(self) -> Any:
        """A lane's run is as long as the chance of reaching a depth is at least its luck."""
        rates = np.clip(self._acceptance * self._by_depth[:, None] + self._offsets, 1e-9, 1 - 1e-9)
        return sum((self._log_luck <= reached).astype(int) for reached in np.cumsum(np.log(rates), axis=0))

    def _table(self, drafts: Drafts) -> list[Outcome]:
        """Outcomes of every round of the block, should it have these drafts."""
        full, extra = drafts
        runs = self._runs
        reached = [(runs >= depth).sum(axis=1) for depth in range(full + 1)]
        trials, hits = reached[:-1], reached[1:]
        if extra:
            trials.append((runs[:, :extra] >= full).sum(axis=1))
            hits.append((runs[:, :extra] > full).sum(axis=1))
        emitted = (self._lanes + np.sum(hits, axis=0)).tolist()
        return list(
            zip(
                emitted,
                zip(*(counts.tolist() for counts in trials), strict=True),
                zip(*(counts.tolist() for counts in hits), strict=True),
                strict=True,
            )
        )


def delays_of(scenario: Scenario, generator: np.random.Generator) -> Iterator[Delay]:
    """The delays of a scenario in order of time, endless in its last phase."""
    seeds = generator.spawn(len(scenario.phases) + len(scenario.bursts))
    phases = scenario.phases
    ends: list[float] = [*(phase.from_ns for phase in phases[1:]), float("inf")]
    at_random = [
        _delays_at_random(phase.conditions, phase.from_ns, end_ns, seed)
        for phase, end_ns, seed in zip(phases, ends, seeds[: len(phases)], strict=True)
    ]
    in_bursts = [_delays_in_bursts(b, seed) for b, seed in zip(scenario.bursts, seeds[len(phases) :], strict=True)]
    return heapq.merge(*at_random, *in_bursts)


def _delays_at_random(
    conditions: Conditions, from_ns: int, until_ns: float, generator: np.random.Generator
) -> Iterator[Delay]:
    if conditions.delay_rate_hz <= 0:
        return
    at_ns = float(from_ns)
    while True:
        at_ns += generator.exponential(1e9 / conditions.delay_rate_hz)
        size_ns = conditions.delay_median_ns * generator.lognormal(0, conditions.delay_sigma)
        if at_ns >= until_ns:
            return
        yield Delay(int(at_ns), int(size_ns), conditions.delay_rounds)


def _delays_in_bursts(bursts: Bursts, generator: np.random.Generator) -> Iterator[Delay]:
    at_ns = bursts.first_ns
    while True:
        for _ in range(bursts.delays):
            yield Delay(at_ns, int(bursts.median_ns * generator.lognormal(0, bursts.sigma)), bursts.rounds)
        at_ns += bursts.every_ns

"""The published experiment: 40 cells, before and after, in mirrored order."""

from collections.abc import Iterator
from typing import NamedTuple

from engine_hooks.simulator.parameters import MS_NS, PLAIN_NS, Engine, Scenario, graphs_at, steady

CELLS_PER_PACKAGE = 10
BEFORE = "exposed_mean"
AFTER = "drained_share"


class Package(NamedTuple):
    """One host and package of the experiment."""

    name: str
    delay_rate_hz: float
    """How often its host stumbles."""
    gpu_speed: float
    """Factor on its device times."""
    published: tuple[int, int, int, int]
    """Tokens/s before and after, stuck cells before and after, as published."""


PACKAGES: tuple[Package, ...] = (
    Package("frank1 main", 0.07, 1.013, (2445, 2432, 4, 0)),
    Package("frank1 B", 0.07, 0.993, (2464, 2483, 4, 0)),
    Package("frank2 main", 0.15, 1.000, (2370, 2464, 8, 0)),
    Package("frank2 B", 0.005, 0.990, (2514, 2497, 0, 0)),
)
OTHER_LANES: tuple[tuple[int, int, int], ...] = ((1, 362, 374), (8, 1339, 1357), (16, 1863, 1911))
"""Lanes, published tokens/s before and after: no regression away from 32 lanes."""
OTHER_LANES_DELAY_RATE_HZ = 0.07


class ExperimentCell(NamedTuple):
    """One cell in the order of the experiment."""

    package: Package
    pair: int
    """Which of the package's cells, from 0. A pair's two arms meet the same delays and noise."""
    policy: str
    position: int
    """Place in the mirrored order within the package: before after after before …"""
    scenario: Scenario
    seed: int


def package_scenario(package: Package) -> Scenario:
    """The scenario of one cell of a package, 30 s at 32 lanes."""
    return Scenario(
        package.name, Engine(gpu_speed=package.gpu_speed), phases=steady(delay_rate_hz=package.delay_rate_hz)
    )


def lanes_scenario(lanes: int) -> Scenario:
    """A cell at 1, 8 or 16 lanes; delays are shrunk in proportion to the lanes."""
    engine = Engine(lanes, graphs_at(lanes))
    delays = {"delay_rate_hz": OTHER_LANES_DELAY_RATE_HZ, "delay_median_ns": 60 * MS_NS * lanes // max(PLAIN_NS)}
    return Scenario(f"{lanes} lanes", engine, phases=steady(**delays))


def experiment_cells(
    replicate: int, policies: tuple[str, ...] = (BEFORE, AFTER), packages: tuple[Package, ...] = PACKAGES
) -> Iterator[ExperimentCell]:
    """Every cell of one replicate; the order of the policies is mirrored from pair to pair."""
    for number, package in enumerate(packages):
        scenario = package_scenario(package)
        for pair in range(CELLS_PER_PACKAGE):
            seed = (replicate * len(packages) + number) * CELLS_PER_PACKAGE + pair
            order = policies if pair % 2 == 0 else policies[::-1]
            for place, policy in enumerate(order):
                yield ExperimentCell(package, pair, policy, pair * len(policies) + place, scenario, seed)

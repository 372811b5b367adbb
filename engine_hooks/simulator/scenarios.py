"""The scenarios of the regret table: what an engine may meet, and how well a cost model takes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from engine_hooks.simulator.errors import SimulatorError
from engine_hooks.simulator.parameters import (
    MS_NS,
    S_NS,
    Bursts,
    Conditions,
    Engine,
    Phase,
    Rounds,
    Scenario,
    graphs_at,
    steady,
)

ENGINE = Engine(graph_gpu_ns=graphs_at(32, plain_ns=13_900_000))
"""Plain decode is a little slower than in the experiment, so that speculation is clearly worth it."""
ACCEPTANCE = 0.65
DURATION_NS = 60 * S_NS


def scenario(name: str, *, bursts: tuple[Bursts, ...] = (), **conditions: Any) -> Scenario:
    """60 s under the same conditions throughout."""
    return Scenario(
        name, ENGINE, steady(**{"acceptance": ACCEPTANCE, **conditions}), bursts=bursts, duration_ns=DURATION_NS
    )


def changing(name: str, *phases: tuple[int, dict[str, Any]]) -> Scenario:
    """60 s in phases, each from a second on."""
    stretches = tuple(
        Phase(second * S_NS, Conditions(**{"acceptance": ACCEPTANCE, **conditions})) for second, conditions in phases
    )
    return Scenario(name, ENGINE, stretches, duration_ns=DURATION_NS)


def _published() -> list[Scenario]:
    slow = {"host_factor": 1.5}
    every = Rounds.ALL
    return [
        scenario("clean"),
        scenario("grammar lane", grammar_lanes=1),
        scenario("prefill 5 Hz", prefill_rate_hz=5.0),
        scenario("delays on speculative rounds, 0.1 Hz", delay_rate_hz=0.1),
        scenario("delays on all rounds, 0.2 Hz", delay_rate_hz=0.2, delay_rounds=every),
        scenario("grammar lane + delays on all rounds", grammar_lanes=1, delay_rate_hz=0.2, delay_rounds=every),
        scenario("bursts of 5 delays every 10 s", bursts=(Bursts(5, 10 * S_NS, 5 * S_NS),)),
        scenario("bursts of 20 delays every 20 s", bursts=(Bursts(20, 20 * S_NS, 10 * S_NS),)),
        *(scenario(f"host {f}x on speculative rounds", host_factor=f) for f in (1.05, 1.2, 1.5, 2.0)),
        *(scenario(f"host {f}x on all rounds", host_factor=f, host_rounds=every) for f in (1.2, 1.5, 2.0)),
        scenario(
            "host 20 ms every round, acceptance 0.5", acceptance=0.5, host_planning_ns=20 * MS_NS, host_rounds=every
        ),
        changing("host 1.5x on speculative rounds until 20 s", (0, slow), (20, {})),
        changing("host 1.5x on speculative rounds from 20 s", (0, {}), (20, slow)),
        scenario(
            "host 1.2x on speculative rounds + delays on all", host_factor=1.2, delay_rate_hz=0.2, delay_rounds=every
        ),
        scenario("prefill 5 Hz + host 1.5x on speculative rounds", prefill_rate_hz=5.0, host_factor=1.5),
        changing("GPU times +15 % from 20 s", (0, {}), (20, {"gpu_factor": 1.15})),
        changing("acceptance 0.65 -> 0.3 at 20 s", (0, {}), (20, {"acceptance": 0.3})),
        changing("acceptance 0.65 -> 0.3 -> 0.65", (0, {}), (20, {"acceptance": 0.3}), (40, {})),
    ]


SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType({one.name: one for one in _published()})
"""The table's scenarios by name."""


def scenario_named(name: str) -> Scenario:
    """A scenario of the table.

    Raises `SimulatorError` if there is none of that name.
    """
    try:
        return SCENARIOS[name]
    except KeyError:
        raise SimulatorError(f"no scenario is called {name!r}; there are: {'; '.join(SCENARIOS)}") from None

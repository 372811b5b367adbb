"""Scenarios beside the published table, invented to check a cost model on what it was not tuned on."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

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
from engine_hooks.simulator.scenarios import DURATION_NS, changing, scenario

NEAR_TIE_PLAIN_NS = 12_800_000
"""With it plain decode, P108 and P128 lie within a few per cent of one another at an acceptance of 0.62."""


def _on(engine: Engine, name: str, *, bursts: tuple[Bursts, ...] = (), **conditions: Any) -> Scenario:
    return Scenario(name, engine, steady(**conditions), bursts=bursts, duration_ns=DURATION_NS)


def _disturbed_hosts() -> list[Scenario]:
    slow = {"host_factor": 1.5}
    every = {"host_factor": 1.6, "host_rounds": Rounds.ALL}
    only_speculative = Rounds.SPECULATIVE
    return [
        scenario("bursts of 3 delays every 3 s", bursts=(Bursts(3, 3 * S_NS, 2 * S_NS),)),
        scenario("bursts of 10 delays every 12 s", bursts=(Bursts(10, 12 * S_NS, 7 * S_NS),)),
        scenario("bursts of 50 delays every 30 s", bursts=(Bursts(50, 30 * S_NS, 11 * S_NS),)),
        scenario(
            "bursts of 20 delays on speculative rounds every 15 s",
            bursts=(Bursts(20, 15 * S_NS, 4 * S_NS, only_speculative),),
        ),
        scenario("bursts of 12 long delays", bursts=(Bursts(12, 20 * S_NS, 6 * S_NS, median_ns=200 * MS_NS),)),
        changing("host 1.5x on speculative rounds from 10 s to 15 s", (0, {}), (10, slow), (15, {})),
        changing("host 1.5x on speculative rounds from 10 s to 40 s", (0, {}), (10, slow), (40, {})),
        changing("host 3x on speculative rounds from 25 s to 35 s", (0, {}), (25, {"host_factor": 3.0}), (35, {})),
        changing("host 1.6x on all rounds from 10 s to 30 s", (0, {}), (10, every), (30, {})),
        scenario("host 1.35x on speculative rounds", host_factor=1.35),
        scenario("host 4x on speculative rounds", host_factor=4.0),
        scenario("host 1.15x on speculative rounds", host_factor=1.15),
        scenario("host 1.5x on P128 and P108", host_factor=1.5, host_graphs=("P128", "P108")),
        scenario("host 1.5x on P128 alone", host_factor=1.5, host_graphs=("P128",)),
        scenario("host 25 ms every round", host_planning_ns=25 * MS_NS, host_rounds=Rounds.ALL),
        scenario("grammar lane + host 1.5x on speculative rounds", grammar_lanes=1, host_factor=1.5),
        scenario(
            "host 1.5x on speculative rounds + delays on all",
            host_factor=1.5,
            delay_rate_hz=0.5,
            delay_rounds=Rounds.ALL,
        ),
    ]


def _other_engines() -> list[Scenario]:
    slow_prefill = Engine(graph_gpu_ns=graphs_at(32, plain_ns=13_900_000), prefill_ns=45 * MS_NS)
    tied = Engine(graph_gpu_ns=graphs_at(32, plain_ns=NEAR_TIE_PLAIN_NS, budgets=(104, 108, 112, 128)))
    drift = (
        Phase(0, Conditions()),
        Phase(15 * S_NS, Conditions(gpu_factor=1.1, delay_rate_hz=0.3)),
        Phase(35 * S_NS, Conditions(gpu_factor=0.95, delay_rate_hz=0.3, delay_rounds=Rounds.ALL)),
    )
    return [
        _on(slow_prefill, "slow prefill 3 Hz", prefill_rate_hz=3.0),
        _on(slow_prefill, "slow prefill 3 Hz + delays on all rounds", prefill_rate_hz=3.0, delay_rate_hz=0.3),
        _on(tied, "near-tied graphs"),
        _on(tied, "near-tied graphs + delays on all rounds", delay_rate_hz=0.3, delay_rounds=Rounds.ALL),
        _on(tied, "near-tied graphs + host 1.1x on speculative rounds", host_factor=1.1),
        *(_on(Engine(n, graphs_at(n)), f"{n} lanes + delays", delay_rate_hz=0.2) for n in (1, 8, 16)),
        *(_on(Engine(n, graphs_at(n)), f"{n} lanes + host 1.5x", host_factor=1.5) for n in (1, 8, 16)),
        Scenario("drift with delays", Engine(), drift, duration_ns=DURATION_NS),
    ]


INVENTED: Final[Mapping[str, Scenario]] = MappingProxyType(
    {one.name: one for one in (*_disturbed_hosts(), *_other_engines())}
)
"""The invented scenarios by name."""

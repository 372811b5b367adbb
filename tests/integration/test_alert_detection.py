"""What alerts find of simulated engines, and how soon: the short form of `make bench-alerts`."""

from pathlib import Path

from clickhouse_connect.driver.client import Client

from tests.fixtures.alert_fleets import (
    EXPECTED,
    HEALTHY,
    INTERVAL_S,
    Kind,
    fleet_start_ns,
    held_from_s,
    simulated,
    watched,
)

DURATION_S = 130.0


def test_sick_engines_are_told_at_once_and_healthy_ones_never(
    clickhouse: Client, clickhouse_url: str, tmp_path: Path
) -> None:
    fleet_ns = fleet_start_ns()
    kinds = [Kind.STUMBLE, Kind.STUMBLE, Kind.DELAYS, *EXPECTED]
    engines = [simulated(kind, seed, fleet_ns, DURATION_S) for seed, kind in enumerate(kinds)]
    told = watched(engines, clickhouse, clickhouse_url, tmp_path, duration_s=DURATION_S, fleet_ns=fleet_ns)
    by_engine = {engine.resource.service_instance_id: engine for engine in engines}
    false = [one for one in told if by_engine[one.instance].kind in HEALTHY]
    assert false == []
    for engine in engines:
        if rule := EXPECTED.get(engine.kind):
            mine = [one for one in told if (one.alertname, one.instance) == (rule, engine.resource.service_instance_id)]
            assert len(mine) == 1, (engine.kind, engine.seed, told)
            if engine.kind == Kind.STUCK:
                assert mine[0].at_s - held_from_s(engine, fleet_ns) <= INTERVAL_S

"""GPU times that moved: all together or one by itself, never both of one stretch; losses from one figure."""

from collections.abc import Iterator

import numpy as np
import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GpuTimeSource
from queries.findings.diagnosis import diagnose
from queries.findings.findings import Diagnosis, Finding, Kind, SpeedChange
from queries.findings.record import record_of
from queries.postmortem.story import headline_of, words_of
from tests.fixtures.query_rows import MS, round_of

GPU_MS = {"decode": 10.0, "P64": 14.0}
HALF = 700
TWICE = {"decode": 2.0, "P64": 2.0}


def rounds(
    factors: dict[str, float], source: GpuTimeSource = GpuTimeSource.CUDA_EVENT, stumble_every: int = 0
) -> Iterator[GraphExecution]:
    """Two graphs in turn; in the second half each takes so many times as long as before."""
    random, at_ms = np.random.default_rng(7), 0.0
    for n in range(2 * HALF):
        graph = ("decode", "P64")[n % 2]
        gpu_ms = GPU_MS[graph] * (factors[graph] if n >= HALF else 1.0) * random.normal(1, 0.003)
        stumbles = stumble_every and n and n % stumble_every == 0
        wall_ms = gpu_ms + (60.0 if stumbles else 0.0)
        yield round_of(
            n,
            at_ms + wall_ms - gpu_ms,
            graph,
            gpu_ms,
            wall_ms=wall_ms,
            graph_gpu_time_source=source,
            graph_queue_depth=0 if stumbles else 1,
        )._replace(duration_ns=int(gpu_ms * MS))
        at_ms += wall_ms


def speed_of(diagnosis: Diagnosis) -> list[SpeedChange]:
    return [finding for finding in diagnosis.findings if isinstance(finding, SpeedChange)]


def agrees(diagnosis: Diagnosis, finding: Finding) -> None:
    """Tokens lost are that share of what would have been emitted."""
    would = diagnosis.tokens_emitted + finding.tokens_lost
    assert finding.tokens_lost / would == pytest.approx(finding.loss_percent / 100)


def test_a_drift_of_all_is_nobodys_own() -> None:
    diagnosis = diagnose(record_of(rounds(TWICE)))
    (drift,) = speed_of(diagnosis)
    assert drift.kind == Kind.CLOCK_DRIFT
    assert drift.ratio == pytest.approx(2, rel=0.01)
    assert drift.graphs == ("P64", "decode")
    # Half the rounds took twice as long: two thirds of the time at half the throughput.
    assert drift.loss_percent == pytest.approx(100 / 3, abs=0.3)
    agrees(diagnosis, drift)
    assert "moved together" in drift.evidence[0].says
    assert "by itself" not in drift.evidence[0].says


def test_a_drift_is_told_of_the_graph_that_was_executed_most() -> None:
    random, at_ms, record = np.random.default_rng(7), 0.0, []
    for n in range(2 * HALF):
        graph = "P64" if n % 10 == 0 else "decode"
        slower = {"decode": 2.0, "P64": 1.8}[graph] if n >= HALF else 1.0
        gpu_ms = GPU_MS[graph] * slower * random.normal(1, 0.003)
        record.append(round_of(n, at_ms, graph, gpu_ms))
        at_ms += gpu_ms
    (drift,) = speed_of(diagnose(record_of(record)))
    assert (drift.kind, drift.ratio) == (Kind.CLOCK_DRIFT, pytest.approx(2.0, rel=0.01))


def test_one_graphs_rise_is_no_drift() -> None:
    (regression,) = speed_of(diagnose(record_of(rounds({"decode": 1.0, "P64": 1.5}))))
    assert (regression.kind, regression.graphs) == (Kind.GRAPH_REGRESSION, ("P64",))
    assert regression.ratio == pytest.approx(1.5, rel=0.01)
    assert regression.evidence[0].says.startswith("The GPU time of P64 rose by a factor of 1.5")
    assert " by itself; meanwhile: decode 1.00" in regression.evidence[0].says


def test_a_rise_that_the_other_overtakes_between_its_steps_is_not_its_own() -> None:
    """P64 in two steps, decode by as much in one between them: at neither of its steps anything else moved."""
    factors = [(1.0, 1.0), (1.0, 1.1), (1.21, 1.1), (1.21, 1.21)]
    random, at_ms, record = np.random.default_rng(7), 0.0, []
    for n in range(2000):
        turn = n % 2
        gpu_ms = (10.0, 14.0)[turn] * factors[n // 500][turn] * random.normal(1, 0.003)
        record.append(round_of(n, at_ms, ("decode", "P64")[turn], gpu_ms))
        at_ms += gpu_ms
    assert ("P64",) not in [finding.graphs for finding in speed_of(diagnose(record_of(record)))]


@pytest.mark.parametrize("decode", [1.05, 1.2, 1.4, 1.6, 1.8, 2.0])
@pytest.mark.parametrize("p64", [1.05, 1.2, 1.4, 1.6, 1.8, 2.0])
def test_in_one_stretch_it_is_the_one_or_the_other(decode: float, p64: float) -> None:
    found = speed_of(diagnose(record_of(rounds({"decode": decode, "P64": p64}))))
    assert len({finding.kind for finding in found}) == 1
    for finding in found:
        says = finding.evidence[0].says
        # Both rose: nothing may be said to have risen by itself unless the other stayed, noise aside.
        assert "by itself" not in says or min(decode, p64) < 1.06
        for factor in (decode, p64):
            assert any(
                abs(float(word.strip(",.;")) - factor) < 0.02 * factor for word in says.split() if is_number(word)
            )


def is_number(word: str) -> bool:
    return word.strip(",.;").replace(".", "", 1).isdigit()


@pytest.mark.parametrize("factors", [TWICE, {"decode": 1.0, "P64": 1.5}])
def test_the_hosts_clock_says_nothing_of_the_gpus(factors: dict[str, float]) -> None:
    (finding,) = speed_of(diagnose(record_of(rounds(factors, GpuTimeSource.HOST))))
    assert finding.timed_by_host
    assert "GPU" not in finding.evidence[0].says + words_of(finding)
    assert "by the host's clock" in finding.evidence[0].says
    (by_event,) = speed_of(diagnose(record_of(rounds(factors))))
    assert "by the host's clock" not in by_event.evidence[0].says + words_of(by_event)


def test_the_headlines_figure_is_its_own_causes() -> None:
    diagnosis = diagnose(record_of(rounds(TWICE, stumble_every=20)))
    contention = next(finding for finding in diagnosis.findings if finding.kind == Kind.CPU_CONTENTION)
    assert diagnosis.label == Kind.CPU_CONTENTION
    assert Kind.CLOCK_DRIFT in diagnosis.also
    idle_s = 60e-3 * (2 * HALF // 20 - 1)
    assert contention.loss_percent == pytest.approx(100 * idle_s / diagnosis.seconds, rel=0.02)
    assert headline_of(diagnosis).endswith(f"; {contention.loss_percent:.1f} % of its throughput lost.")
    agrees(diagnosis, contention)

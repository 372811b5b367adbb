"""What the host is charged with, by engines in virtual time: as many in flight as they like, draining as they like."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from queries.findings.costs import costs_of
from queries.findings.diagnosis import diagnose
from queries.findings.findings import Diagnosis, Kind
from queries.findings.record import record_of
from queries.findings.timeline import timeline_of
from queries.postmortem.story import headline_of, story_of
from tests.fixtures.query_rows import MS, START_NS, believing, round_of
from tests.fixtures.replayed_cells import cell_of

GPU_MS = {"decode": 20.0, "P64": 29.0, "P128": 42.0}
PREFILL_MS, NOTIFY_MS, LAUNCH_MS = 60.0, 0.05, 0.03
CHARGED = believing({"decode": (20, 4.0), "P64": (29, 10.0)})
ROUNDS = 600


@dataclass
class Engine:
    """One that observes in its loop: it takes `host_ms` for a round, then submits it."""

    in_flight_max: int = 2
    host_ms: Callable[[int], float] = lambda _: 0.5
    graph: Callable[[int], str] = lambda _: "P64"
    prefill_every: int = 0
    """Before each so manieth round it drains its queue, and prefills."""
    pause_ms: Callable[[int], float] = lambda _: 0.0
    """Before this round it drains its queue, and then does nothing for so long."""

    def executions(self) -> Iterator[GraphExecution]:
        self._at = self._free = 0.0
        self._flying: deque[tuple[GraphExecution, float]] = deque()
        self._sequence = 0
        for n in range(ROUNDS):
            if self.prefill_every and n % self.prefill_every == 1:
                yield from self._seen_but(0)
                self._submit("prefill", PREFILL_MS, graph_kind=GraphKind.PREFILL)
                yield from self._seen_but(0)
            if self.pause_ms(n):
                yield from self._seen_but(0)
                self._at += self.pause_ms(n)
            yield from self._seen_but(self.in_flight_max - 1)
            self._at += self.host_ms(n)
            self._submit(self.graph(n), GPU_MS[self.graph(n)] + n % 3 * 0.1, **CHARGED)
        yield from self._seen_but(0)

    def _submit(self, graph: str, gpu_ms: float, **fields: Any) -> None:
        begins = max(self._free, self._at + LAUNCH_MS)
        depth = sum(ends > self._at for _, ends in self._flying)
        wall_ms = begins + gpu_ms - (self._free or self._at)
        offset_ns = int((begins - self._at) * MS)
        self._free = begins + gpu_ms
        one = round_of(
            self._sequence, self._at, graph, gpu_ms, wall_ms=wall_ms, graph_queue_depth=depth,
            graph_gpu_start_offset_ns=offset_ns, graph_after_idle=not self._sequence, **fields,
        )  # fmt: skip
        self._sequence += 1
        self._flying.append((one, self._free))

    def _seen_but(self, left: int) -> Iterator[GraphExecution]:
        while len(self._flying) > left:
            one, ends = self._flying.popleft()
            submitted = self._at_submission(one)
            self._at = max(self._at, ends + NOTIFY_MS)
            yield one._replace(duration_ns=int((self._at - submitted) * MS))

    def _at_submission(self, one: GraphExecution) -> float:
        return (one.started_at - START_NS) / MS


def told(engine: Engine) -> Diagnosis:
    return diagnose(record_of(engine.executions()))


def kinds(diagnosis: Diagnosis) -> set[Kind]:
    return {finding.kind for finding in diagnosis.findings}


def irregularly(n: int) -> float:
    """Some 40 ms every dozen rounds, and 0.5 ms between."""
    return float(np.random.default_rng(n).uniform(30, 50)) if n * 7919 % 12 == 0 else 0.5


@pytest.mark.parametrize("every", [8, 15])
def test_a_queue_drained_before_each_prefill_is_nothing_that_the_host_did(every: int) -> None:
    """It neither marks that it waits, nor is it late: the device idles for 0.6 ms before each prefill and after it."""
    engine = Engine(prefill_every=every)
    assert not kinds(told(engine))
    timeline = timeline_of(record_of(engine.executions()))
    assert timeline.host.max() <= 0.6 * MS
    assert timeline.gap.max() <= 0.7 * MS


def test_an_engine_with_one_in_flight_waits_for_its_gpu() -> None:
    """0.5 of 29 ms are the host's, not 29.5; 0.58 of 29.68 ms are idle, 2.0 %."""
    diagnosis = told(Engine(in_flight_max=1))
    assert kinds(diagnosis) == {Kind.FEEDBACK_BOUND}
    (finding,) = diagnosis.findings
    assert finding.loss_percent == pytest.approx(100 * 0.58 / 29.68, rel=0.02)
    assert "the record cannot tell" in finding.evidence[0].says
    assert headline_of(diagnosis) == "Healthy."


def test_what_an_engine_with_one_in_flight_idles_is_not_called_healthy() -> None:
    diagnosis = told(Engine(in_flight_max=1, host_ms=lambda _: 20.0))
    assert kinds(diagnosis) == {Kind.FEEDBACK_BOUND}
    assert (
        headline_of(diagnosis) == f"One round in flight at a time; {100 * 20.08 / 49.18:.1f} % of its throughput lost."
    )


def test_three_in_flight_are_never_late() -> None:
    assert not kinds(told(Engine(in_flight_max=3)))


def test_a_host_slower_than_the_device_is_still_found() -> None:
    """45 ms for 29.1: by a factor of 1.55."""
    diagnosis = told(Engine(host_ms=lambda _: 45.0))
    assert diagnosis.label is Kind.HOST_BOUND
    assert vars(diagnosis.findings[0])["host_time_ratio"] == pytest.approx(45 / 29.1, rel=0.01)


def test_a_host_that_is_held_up_is_still_found_and_as_sure_as_what_the_device_shows() -> None:
    diagnosis = told(Engine(host_ms=irregularly))
    assert diagnosis.label is Kind.CPU_CONTENTION
    assert diagnosis.findings[0].confidence == 0.97
    masked = told(Engine(host_ms=lambda n: 20.0 if n % 9 == 0 else 0.5))
    assert not kinds(masked), "the device, two deep, never idled for it"


def test_pauses_of_a_free_host_are_told_once() -> None:
    """Of an engine that marks no idleness: 9 of 100 ms and 9 of 300 ms are of one kind, for all one can tell."""
    paused = told(Engine(pause_ms=lambda n: (100.0 if n % 2 else 300.0) if n % 33 == 7 else 0.0))
    assert kinds(paused) == {Kind.IDLE}
    (evidence,) = paused.findings[0].evidence
    assert "before 18 executions of a free host: whether it had no work or was held up" in evidence.says
    assert paused.findings[0].confidence < 0.7


def test_host_delays_are_harmless_or_cost_something() -> None:
    """One of 60 ms in 17 s is no loss worth a word, one of 100 ms in every 2 s is."""
    executions = list(Engine(host_ms=lambda n: 60.0 if n == 300 else 0.5).executions())
    story = story_of(cell_of(executions), diagnose(record_of(executions)))
    assert story.headline == "Healthy."
    assert [chapter.title for chapter in story.chapters] == ["A host delay that did no harm: confidence 0.97"]
    executions = list(Engine(host_ms=lambda n: 100.0 if n % 66 == 9 else 0.5).executions())
    story = story_of(cell_of(executions), diagnose(record_of(executions)))
    assert story.headline.startswith("Host delays that turned no decision; 3.")
    assert story.chapters[0].title.startswith("Host delays that turned no decision: 3.")


def hardly_run(n: int) -> str:
    """P64 four times in all, P128 every ninth round from then on."""
    return "P64" if n in (8, 16, 24, 32) else "P128" if n % 9 == 5 else "decode"


def test_how_late_a_graph_is_that_hardly_runs_is_told_by_its_own_rounds() -> None:
    """The host takes 50 ms for a speculative round, whichever it is, so that both cost that much."""
    engine = Engine(graph=hardly_run, host_ms=lambda n: 12.0 if hardly_run(n) == "decode" else 50.0)
    timeline = timeline_of(record_of(engine.executions()))
    total = costs_of(timeline).total
    for graph in ("P64", "P128"):
        assert total[10, timeline.graph_numbered(graph)] == pytest.approx(50 * MS, rel=0.01)


def test_a_verdict_unlike_the_fleets_figure_says_why() -> None:
    """Plain decode at 0.2 tokens a ms; P64 at 0.19 by what was expected, and 0.26 by what was accepted."""
    charged = believing({"decode": (20, 4.0), "P64": (29, 5.5)})
    fields = {"batch_tokens_drafted": 12, "batch_tokens_accepted": 6}
    executions, at_ms = [], 0.0
    for n in range(600):
        graph = "P64" if n < 90 else "decode"
        gpu_ms = GPU_MS[graph]
        executions.append(round_of(n, at_ms, graph, gpu_ms, **charged, **(fields if n < 90 else {})))
        at_ms += gpu_ms
    story = story_of(cell_of(executions), diagnose(record_of(executions)))
    (said,) = (chapter.sentences[0].text for chapter in story.chapters if chapter.title == "In plain decode")
    assert "wrongly in plain decode" in said
    assert (
        "% behind P64 over them (5.5 % ahead of P64 at the tokens that the scheduler expected, as stuck_plain counts)"
        in said
    )

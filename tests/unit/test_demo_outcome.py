"""What the demo says of the stumbles it was asked for: what they did, and why one did not happen."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from engine_hooks.commands.demo.asked import Asked, Clock
from engine_hooks.commands.demo.outcome import outcome_of
from engine_hooks.commands.demo.torch_engine import own_cell
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.torch_demo.host_delay import HostDelay, HostDelays
from engine_hooks.torch_demo.totals import Totals
from engine_hooks.torch_demo.tuning import Tuning

MS_NS = 1_000_000
SPECULATIVE, PLAIN = GraphKind.SPECULATIVE, GraphKind.PLAIN_DECODE


def executed(kind: GraphKind, wall_ms: int, gpu_ms: int = 3, depth: int = 0) -> GraphExecution:
    return GraphExecution(
        graph_name=kind,
        graph_kind=kind,
        graph_sequence=0,
        started_at=0,
        duration_ns=wall_ms * MS_NS,
        graph_gpu_time_ns=gpu_ms * MS_NS,
        graph_wall_time_ns=wall_ms * MS_NS,
        graph_queue_depth=depth,
    )


def engine(before: Iterable[GraphExecution], since: Iterable[GraphExecution] = (), waiting: float | None = None) -> Any:
    """One that stumbled once, between the two."""
    totals = Totals()
    for execution in before:
        totals.add(execution)
    totals.mark_stumble()
    totals.add(executed(SPECULATIVE, wall_ms=63), stumbled=True)
    for execution in since:
        totals.add(execution)
    delays = HostDelays([HostDelay(1.0, 0.06), *([] if waiting is None else [HostDelay(waiting, 0.06)])], [].append)
    delays.meet(1.0)
    return SimpleNamespace(
        totals=totals,
        delays=delays,
        ran_s=25.0,
        graphs=(SimpleNamespace(name="decode"), SimpleNamespace(name="P28")),
        tuning=Tuning(6, 1.6, (0.67,), (2 * MS_NS, *[4 * MS_NS] * 6)),
        charged_before_stumble_ns={"decode": 2 * MS_NS, "P28": 4 * MS_NS},
        charged_after_stumble_ns={"decode": 2 * MS_NS, "P28": 14 * MS_NS},
        charged_ns=lambda: {"decode": 5 * MS_NS, "P28": 7 * MS_NS},
    )


CHARGED = (
    "P28 pays while it is charged less than 3.2 times decode, as measured at the start; it was charged 2.0 times before "
    "the stumble (4.0 to 2.0 ms), 7.0 times right after it (14.0 to 2.0 ms), 1.4 times at the end (7.0 to 5.0 ms)"
)


def asked(clock: Clock = Clock.WALL, seconds: float = 25) -> Asked:
    return Asked("host1:1", "bench-1", seconds, clock)


def test_an_engine_that_turned() -> None:
    # Before: 12 of 12 ms speculative. Since: 63 ms speculative and 37 + 150 ms plain of 250 ms.
    ran = engine([executed(SPECULATIVE, 3)] * 4, [executed(PLAIN, 37), executed(PLAIN, 150, gpu_ms=146)])
    assert ran.totals.plain_fraction == 187 / 262
    assert outcome_of(ran, asked()) == [
        "the engine turned to plain decode: 0% of the decoding was plain before the stumble, 75% after it",
        CHARGED,
        "the host was late by itself 1 time, by more than 5 ms, 1 of them at plain decode: each blurs what the "
        "stumble did; run it again on a quieter machine, or with --clock processor",
    ]


def test_an_engine_that_did_not_turn_on_a_busy_machine() -> None:
    late = [executed(PLAIN, 9), executed(SPECULATIVE, 20), executed(GraphKind.PREFILL, 20)]
    on_time = [executed(PLAIN, 8), executed(SPECULATIVE, 20, depth=1)]
    effect, charged, own = outcome_of(engine(late + on_time, [executed(SPECULATIVE, 3)] * 9), asked())
    assert effect == (
        "the engine did not turn to plain decode: 30% of the decoding was plain before the stumble, 0% after it"
    )
    assert charged == CHARGED
    assert own.startswith("the host was late by itself 2 times, by more than 5 ms, 1 of them at plain decode: each")


def test_a_quiet_machine_and_one_that_does_not_count() -> None:
    ran = engine([executed(SPECULATIVE, 3)])
    assert outcome_of(ran, asked())[2:] == [
        "the host was late by itself 0 times, by more than 5 ms, 0 of them at plain decode"
    ]
    assert len(outcome_of(ran, asked(Clock.PROCESSOR))) == 2


def test_an_engine_that_turned_for_a_while_and_back() -> None:
    # Since: 63 + 57 ms speculative and 30 ms plain of 150 ms.
    effect, charged = outcome_of(
        engine([executed(SPECULATIVE, 3)], [executed(PLAIN, 30), executed(SPECULATIVE, 57)]), asked(Clock.PROCESSOR)
    )
    assert effect == (
        "the engine turned to plain decode in part, for less than half of the time: "
        "0% of the decoding was plain before the stumble, 20% after it"
    )
    assert charged == CHARGED


def test_an_engine_that_was_in_plain_decode_before_is_not_said_to_have_turned() -> None:
    ran = engine([executed(PLAIN, 30), executed(SPECULATIVE, 10)], [executed(PLAIN, 100)])
    assert outcome_of(ran, asked())[0] == (
        "the engine was in plain decode already: 75% of the decoding was plain before the stumble, 61% after it"
    )


def test_a_stumble_whose_round_was_not_measured_is_told_without_what_was_learnt() -> None:
    ran = engine([executed(SPECULATIVE, 3)])
    ran.charged_after_stumble_ns = {}
    assert "right after it" not in outcome_of(ran, asked())[1]
    assert "before the stumble (4.0 to 2.0 ms), 1.4 times at the end" in outcome_of(ran, asked())[1]


def test_why_a_stumble_did_not_happen() -> None:
    def first(waiting: float, seconds: float) -> str:
        return outcome_of(engine([], waiting=waiting), asked(seconds=seconds))[0]

    assert first(30, 25) == "--host-delay 60ms@30s did not happen: it lay beyond --seconds 25"
    not_planned = "did not happen: no speculative round was planned between then and the end"
    assert first(20, 25) == f"--host-delay 60ms@20s {not_planned}"
    assert first(20, 0) == f"--host-delay 60ms@20s {not_planned}"
    assert first(30, 0) == "--host-delay 60ms@30s did not happen: the run was ended before it, at 25.0 s"


def test_nothing_asked_nothing_said() -> None:
    quiet: Any = SimpleNamespace(totals=Totals(), delays=HostDelays([]))
    assert outcome_of(quiet, asked()) == []


def test_a_run_is_one_cell_unless_it_has_no_end() -> None:
    assert own_cell("exposed_mean", 25).startswith("exposed_mean-")
    assert own_cell("exposed_mean", 0) == ""

"""What became of the stumbles that a run of the demo was asked for, in words."""

from collections.abc import Iterator
from typing import Final

from engine_hooks.commands.demo.asked import Asked, Clock
from engine_hooks.contract.names import GraphKind
from engine_hooks.torch_demo.engine import SpeculativeEngine
from engine_hooks.torch_demo.host_delay import HostDelay
from engine_hooks.torch_demo.totals import LATE_NS

TURNED_ABOVE: Final = 0.5
"""Of the decoding since the first stumble so much is plain that the stumble, or what followed, turned the engine.

Half of the 15 s after the stumble at second 10 of 25 is 0.3 of the run, from which on a cell counts as stuck.
"""
IN_PART_ABOVE: Final = 0.05
"""By so much the plain share rose that the engine turned for a while, and back."""
MS_NS: Final = 1e6


def outcome_of(engine: SpeculativeEngine, asked: Asked) -> list[str]:
    """One line for each thing to know: stumbles that did not happen, what the others did, the machine's own."""
    lines = [
        f"--host-delay {delay} did not happen: {_why_not(delay, asked, engine.ran_s)}"
        for delay in engine.delays.waiting
    ]
    lines += _effect(engine)
    if engine.delays.asked:
        lines += _own_stumbles(engine, asked)
    return lines


def _why_not(delay: HostDelay, asked: Asked, ran_s: float) -> str:
    if asked.seconds and delay.at_s >= asked.seconds:
        return f"it lay beyond --seconds {asked.seconds:g}"
    if delay.at_s >= ran_s:
        return f"the run was ended before it, at {ran_s:.1f} s"
    return "no speculative round was planned between then and the end"


def _effect(engine: SpeculativeEngine) -> Iterator[str]:
    totals = engine.totals
    since, before = totals.plain_fraction_since_stumble, totals.before_stumble
    if since is None or before is None:
        return
    figures = f"{before.plain_fraction:.0%} of the decoding was plain before the stumble, {since:.0%} after it"
    yield f"{_verdict(before.plain_fraction, since)}: {figures}"
    yield from _charges(engine)


def _verdict(before: float, since: float) -> str:
    if since > TURNED_ABOVE:
        already = before > TURNED_ABOVE
        return "the engine was in plain decode already" if already else "the engine turned to plain decode"
    if since - before > IN_PART_ABOVE:
        return "the engine turned to plain decode in part, for less than half of the time"
    return "the engine did not turn to plain decode"


def _charges(engine: SpeculativeEngine) -> Iterator[str]:
    """What the verdict comes from: what the scheduler charged, against what a speculative round is worth."""
    plain, speculative = (graph.name for graph in engine.graphs)
    moments = (
        ("before the stumble", engine.charged_before_stumble_ns),
        ("right after it", engine.charged_after_stumble_ns),
        ("at the end", engine.charged_ns()),
    )
    told = [
        f"{charged[speculative] / charged[plain]:.1f} times {when} "
        f"({charged[speculative] / MS_NS:.1f} to {charged[plain] / MS_NS:.1f} ms)"
        for when, charged in moments
        if charged.get(plain) and speculative in charged
    ]
    tuning = engine.tuning
    worth = tuning.gain * tuning.gpu_times_ns[tuning.drafts] / tuning.gpu_times_ns[0]
    if told:
        yield (
            f"{speculative} pays while it is charged less than {worth:.1f} times {plain}, as measured at the start; "
            f"it was charged {', '.join(told)}"
        )


def _own_stumbles(engine: SpeculativeEngine, asked: Asked) -> Iterator[str]:
    """Without them the effect would be the cost model's alone: each is charged to the graph it met."""
    if asked.clock == Clock.PROCESSOR:
        return
    late = engine.totals.late
    plain, count = late[GraphKind.PLAIN_DECODE], sum(late.values())
    times = f"{count} time{'' if count == 1 else 's'}"
    line = f"the host was late by itself {times}, by more than {LATE_NS / 1e6:.0f} ms, {plain} of them at plain decode"
    remedy = ": each blurs what the stumble did; run it again on a quieter machine, or with --clock processor"
    yield line + (remedy if count else "")

"""A replay in sentences: what a post-mortem, a page or a terminal says of it."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from engine_hooks.commands.counting import counted
from queries.replay.result import ClosedLoop, ExactReplay, Replay


class Swap(NamedTuple):
    """Decisions in which one graph would have been chosen in place of another."""

    graph_name: str
    replayed_graph_name: str
    decisions: int
    seconds: float
    """Wall time of the rounds that were executed."""


def swaps_of(exact: ExactReplay) -> list[Swap]:
    """What would have been chosen in place of what, the most time first."""
    decisions: Counter[tuple[str, str]] = Counter()
    wall_time_ns: Counter[tuple[str, str]] = Counter()
    for one in exact.different:
        pair = one.graph_name, one.replayed_graph_name
        decisions[pair] += 1
        wall_time_ns[pair] += one.graph_wall_time_ns
    return [Swap(*pair, decisions[pair], ns / 1e9) for pair, ns in wall_time_ns.most_common()]


def shares_different(replay: Replay, bins: int) -> list[float | None]:
    """In each of so many equal parts of the cell: the share of ordinary decisions that would have been others.

    `None` where there was none.
    """
    made, different = [0] * bins, [0] * bins
    span_ns = max(replay.ended_at - replay.began_at, 1)
    for one in replay.exact.ordinary if replay.exact else ():
        number = min((one.started_at - replay.began_at) * bins // span_ns, bins - 1)
        made[number] += 1
        different[number] += one.differs
    return [d / m if m else None for d, m in zip(different, made, strict=True)]


def first_difference(replay: Replay) -> str:
    """The first decision of the commonest change, in one sentence; of equally common ones, of the earliest."""
    if not replay.exact or not replay.exact.different:
        return f"{replay.cost_model} would have chosen every graph that was chosen."
    changes = Counter((one.graph_name, one.replayed_graph_name) for one in replay.exact.different)
    [(commonest, _)] = changes.most_common(1)
    one = next(one for one in replay.exact.different if (one.graph_name, one.replayed_graph_name) == commonest)
    at_s = (one.started_at - replay.began_at) / 1e9
    ahead = f", {100 * one.margin:.1f} % ahead" if one.margin is not None else ""
    return (
        f"At {at_s:.3f} s (sequence {one.graph_sequence}) {one.graph_name} was chosen, and"
        f" {one.replayed_graph_name} charged {ms(one.recorded_ns(one.replayed_graph_name))}."
        f" With what was known then {replay.cost_model} would have charged {one.replayed_graph_name} {ms(one.replayed_estimate_ns)} and {one.graph_name}"
        f" {ms(one.charged_ns(one.graph_name))}, and chosen {one.replayed_graph_name}{ahead}."
    )


def ms(ns: int) -> str:
    """Nanoseconds as ms, to a tenth."""
    return f"{ns / 1e6:,.1f} ms"


def caveats(replay: Replay) -> list[str]:
    """What a reader of the exact form must know of the record behind it."""
    exact = replay.exact
    if exact is None:
        return []
    said = [f"{note[0].upper()}{note[1:]}." for note in exact.notes]
    history = exact.history
    if not history.from_startup:
        said.append(
            f"The record begins in the middle of a run: the model learnt from {counted(history.executions, 'execution')} in"
            f" {history.seconds:,.0f} s before the cell, and {counted(exact.decisions_cold, 'decision')} {'was' if exact.decisions_cold == 1 else 'were'} taken with a"
            " graph that it had not seen yet, at what the record first charged it."
        )
    if history.executions_lost:
        said.append(
            f"Missing in the record: {counted(history.executions_lost, 'execution')}, of which the model never learnt."
        )
    if replay.drafting_rounds:
        said.append(
            f"{counted(replay.drafting_rounds, 'speculative round')} had draft executions before"
            f" {'it' if replay.drafting_rounds == 1 else 'them'}: the model learnt and charged both together."
        )
    if exact.decisions_unusable:
        said.append(
            f"Left out, since not all that was to choose from is recorded: {counted(exact.decisions_unusable, 'decision')}."
        )
    if replay.cost_model == replay.recorded_cost_model and exact.agreement is not None:
        said.append(
            f"It is the model that was in charge: {100 * exact.agreement:.1f} % of the decisions come out to the ns."
        )
    return said


def worth(loop: ClosedLoop, model: str) -> str:
    """What the model would have been worth, in one sentence that says that it is simulated."""
    low, high = loop.gain_interval_percent
    verdict = "is within its error of what was recorded" if low <= 0 <= high else "differs from what was recorded"
    return (
        f"By simulation {model} would have emitted {loop.tokens_per_s:,.0f} tokens/s ± {loop.error_percent:.1f} %,"
        f" {loop.gain_percent:+.1f} % ({low:+.1f} to {high:+.1f}) against {loop.recorded_tokens_per_s:,.0f}: this {verdict}."
    )


def bars(shares: Sequence[float | None]) -> str:
    """Shares as a line of bars, one character each; a dot where there is nothing to say."""
    blocks = " ▁▂▃▄▅▆▇█"
    return "".join("·" if share is None else blocks[-(-round(share * 800) // 100)] for share in shares)

"""What is told of one cell: a headline, figures, and sentences with the queries that show them. Pure.

The sentences of a finding are its evidence; what a finding means is decided in `queries.findings`, never here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind, Purpose
from queries.findings.findings import (
    UNCERTAIN,
    BeingInPlain,
    Diagnosis,
    EstimateInflation,
    Finding,
    Kind,
    PlainSpan,
    Poison,
    QueryUse,
    Verdict,
)
from queries.record import CellExecutions

_S_NS: Final = 1_000_000_000

WORDS: Final = {
    Kind.ESTIMATE_INFLATION: "an inflated estimate",
    Kind.PLAIN_RIGHT: "plain decode was truly better",
    Kind.HOST_BOUND: "bound by the host",
    Kind.CPU_CONTENTION: "contention for the host's CPU",
    Kind.DELAY_BURSTS: "bursts of host delays",
    Kind.HARMLESS_DELAY: "a host delay that did no harm",
    Kind.ACCEPTANCE_COLLAPSE: "acceptance collapsed",
    Kind.GRAPH_REGRESSION: "a graph became slower",
    Kind.CLOCK_DRIFT: "the GPU's clock drifted",
    Kind.FEEDBACK_BOUND: "most rounds wait for completion feedback",
    Kind.IDLE: "the engine had no work for a while",
    Kind.EXECUTIONS_LOST: "executions were lost",
    Kind.CLOCK_AHEAD: "the host's clock is ahead",
    Kind.NO_SPECULATION: "no speculative graph to choose",
    Kind.HEALTHY: "healthy",
}
"""A kind of finding, for people."""


class Sentence(NamedTuple):
    """One thing said, and what shows it."""

    text: str
    queries: tuple[QueryUse, ...] = ()


class Chapter(NamedTuple):
    """All that is said of one finding."""

    title: str
    sentences: tuple[Sentence, ...]
    kind: Kind | None = None


class Figure(NamedTuple):
    """One line of the table of figures."""

    name: str
    value: str


class Second(NamedTuple):
    """What one second of the cell was spent on: shares of it, by wall time of ordinary rounds and of the rest."""

    plain: float
    speculative: float
    other: float


@dataclass(frozen=True)
class Story:
    """A post-mortem of one cell."""

    engine: EngineResource
    cell: str
    began_ns: int
    ended_ns: int
    headline: str
    figures: tuple[Figure, ...]
    chapters: tuple[Chapter, ...]
    strip: tuple[Second, ...]
    """One entry a second from `began_ns`."""
    marks_s: tuple[float, ...]
    """When an execution poisoned an estimate, in seconds from `began_ns`."""
    diagnosis: Diagnosis


def story_of(recorded: CellExecutions, diagnosis: Diagnosis) -> Story:
    """The story of one cell."""
    executions = recorded.executions
    began = executions[0].started_at
    return Story(
        engine=recorded.engine,
        cell=recorded.cell,
        began_ns=began,
        ended_ns=max(one.started_at + one.duration_ns for one in executions),
        headline=headline_of(diagnosis),
        figures=tuple(_figures(recorded, diagnosis)),
        chapters=tuple(_chapters(diagnosis)),
        strip=_strip(executions, began),
        marks_s=tuple((poison.at_ns - began) / _S_NS for poison in _poisons(diagnosis)),
        diagnosis=diagnosis,
    )


def headline_of(diagnosis: Diagnosis) -> str:
    """The cell in one line: what it is, why, and what it cost."""
    loss = diagnosis.expected_loss_percent
    cost = f"; {loss:.1f} % of its throughput lost" if loss is not None and loss >= 0.1 else ""
    plain = diagnosis.being_in_plain
    cause = WORDS[diagnosis.label]
    if diagnosis.stuck_by_fault:
        return f"Stuck in plain decode ({plain.plain_fraction:.0%} of its decoding) by an inflated estimate{cost}."
    if plain.stuck and plain.verdict is Verdict.RIGHT:
        because = f": {cause}" if diagnosis.label is not Kind.PLAIN_RIGHT else ""
        return f"Mostly in plain decode ({plain.plain_fraction:.0%}), and rightly so{because}{cost}."
    if plain.stuck:
        return f"Mostly in plain decode ({plain.plain_fraction:.0%}); {cause}{cost}."
    return f"{cause[0].upper()}{cause[1:]}{cost}."


def _figures(recorded: CellExecutions, diagnosis: Diagnosis) -> Iterator[Figure]:
    plain = diagnosis.being_in_plain
    yield Figure("tokens/s", f"{diagnosis.tokens_emitted / diagnosis.seconds:,.0f}" if diagnosis.seconds else "-")
    yield Figure("tokens lost", f"{diagnosis.tokens_lost:,.0f}")
    yield Figure("plain fraction", f"{plain.plain_fraction:.1%}")
    yield Figure("being in plain", f"{plain.verdict}")
    yield Figure("executions", f"{len(recorded.executions):,}")
    models = {one.scheduler_cost_model for one in recorded.executions if one.scheduler_cost_model}
    yield Figure("cost model", ", ".join(sorted(models)) or "not recorded")


def _chapters(diagnosis: Diagnosis) -> Iterator[Chapter]:
    for finding in diagnosis.findings:
        yield Chapter(_title(finding), tuple(_sentences(finding)), finding.kind)
    spans = tuple(_in_plain(diagnosis.being_in_plain))
    if spans:
        yield Chapter("In plain decode", spans)


def _title(finding: Finding) -> str:
    words = WORDS[finding.kind]
    parts = [f"{words[0].upper()}{words[1:]}"]
    if finding.loss_percent >= 0.05:
        parts.append(f"{finding.loss_percent:.1f} % lost ({finding.tokens_lost:,.0f} tokens)")
    parts.append(f"confidence {finding.confidence:.2f}" + (", a lead" if finding.confidence < UNCERTAIN else ""))
    return ": ".join([parts[0], "; ".join(parts[1:])])


def _sentences(finding: Finding) -> Iterator[Sentence]:
    for evidence in finding.evidence:
        yield Sentence(evidence.says, evidence.queries)


def _in_plain(plain: BeingInPlain) -> Iterator[Sentence]:
    for span in plain.spans:
        yield Sentence(_said_of(span))


def _said_of(span: PlainSpan) -> str:
    verdict = "rightly" if span.right else "wrongly"
    ended = f"{span.ended.by}" + (f" of {span.ended.graph}" if span.ended.graph else "")
    return (
        f"From sequence {span.from_sequence} to {span.to_sequence}, {span.seconds:.1f} s and {span.decisions:,} "
        f"decisions, {verdict} in plain decode: it was believed ahead of {span.believed_best_other or 'the others'} by "
        f"{span.believed_margin_percent:.1f} %, and truly by {span.true_margin_percent:.1f} %; ended by: {ended}."
    )


def _poisons(diagnosis: Diagnosis) -> Iterator[Poison]:
    for finding in diagnosis.findings:
        if isinstance(finding, EstimateInflation):
            yield from finding.poisons


def _strip(executions: Iterable[GraphExecution], began_ns: int) -> tuple[Second, ...]:
    """Wall time by the second in which a round ended on the device, so that a second's shares may pass 1 a little."""
    spent: dict[int, list[float]] = {}
    for one in executions:
        second = max(0, (one.started_at + one.duration_ns - began_ns) // _S_NS)
        ordinary = one.graph_purpose is Purpose.ORDINARY
        column = 2
        if ordinary and one.graph_kind is GraphKind.PLAIN_DECODE:
            column = 0
        elif ordinary and one.graph_kind is GraphKind.SPECULATIVE:
            column = 1
        spent.setdefault(second, [0.0, 0.0, 0.0])[column] += one.graph_wall_time_ns / _S_NS
    return tuple(Second(*spent.get(second, (0.0, 0.0, 0.0))) for second in range(max(spent) + 1))

"""What is told of one cell: a headline, figures, and sentences with the queries that show them. Pure.

The sentences of a finding are its evidence; what a finding means is decided in `queries.findings`, never here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from engine_hooks.commands.counting import counted
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind, Purpose
from queries.annotations.marks import Mark
from queries.findings.findings import (
    LOSS_WELL_PERCENT,
    UNCERTAIN,
    Diagnosis,
    EstimateInflation,
    Finding,
    Kind,
    Overcharge,
    PlainSpan,
    Poison,
    QueryUse,
    SpeedChange,
    Undercharge,
    Verdict,
    Waiting,
)
from queries.postmortem.runs import Repeats, repeats_of
from queries.record import CellExecutions, sampled_away

_S_NS: Final = 1_000_000_000
MOST: Final = 0.5
"""Share of the decoding time above which it is most of it."""
LOSS_TOLD_PERCENT: Final = 0.05
"""Smaller losses are not worth a figure."""

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
    Kind.BATCH_CHANGED: "GPU times went with the batch size",
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


class Noted(NamedTuple):
    """What people noted about a cell's engine, within the cell or shortly before it, and the query that shows it."""

    marks: tuple[Mark, ...] = ()
    """The earliest first."""
    shown_by: tuple[QueryUse, ...] = ()
    problem: str = ""
    """Why the marks could not be read; '' where they were."""


NOTHING_NOTED: Final = Noted()


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
    executions: int
    """All that are stored, also where numbers come more than once."""
    executions_dropped: int
    """Of the cell, by sampling; nothing here is told of them."""
    tokens_per_s: float | None
    """What all of them emitted, by the time from `began_ns` to `ended_ns`, as the query `cells` has it; None where none says."""
    headline: str
    figures: tuple[Figure, ...]
    chapters: tuple[Chapter, ...]
    strip: tuple[Second, ...]
    """One entry a second from `began_ns`."""
    marks_s: tuple[float, ...]
    """When an execution poisoned an estimate, in seconds from `began_ns`."""
    diagnosis: Diagnosis
    noted: Noted = NOTHING_NOTED


def story_of(recorded: CellExecutions, diagnosis: Diagnosis, noted: Noted = NOTHING_NOTED) -> Story:
    """The story of one cell."""
    executions = recorded.executions
    began = executions[0].started_at
    ended = max(one.started_at + one.duration_ns for one in executions)
    repeats = repeats_of(executions)
    speed = _tokens_per_s(executions, ended - began)
    said = (sampled_away(recorded.executions_dropped), repeats.headline if repeats else "", headline_of(diagnosis))
    return Story(
        engine=recorded.engine,
        cell=recorded.cell,
        began_ns=began,
        ended_ns=ended,
        executions=len(executions),
        executions_dropped=recorded.executions_dropped,
        tokens_per_s=speed,
        headline=" ".join(filter(None, said)),
        figures=tuple(_figures(recorded, diagnosis, speed)),
        chapters=(*_repeated(repeats, recorded), *_chapters(recorded, diagnosis), *_noted(noted, began)),
        strip=_strip(executions, began, ended),
        marks_s=tuple((poison.at_ns - began) / _S_NS for poison in poisons_of(diagnosis)),
        diagnosis=diagnosis,
        noted=noted,
    )


def headline_of(diagnosis: Diagnosis) -> str:
    """The cell in one line: what it is, why, and what that cause cost, by its own finding."""
    loss = _loss_percent(diagnosis)
    cost = f"; {loss:.1f} % of its throughput lost" if loss >= LOSS_TOLD_PERCENT else ""
    plain = diagnosis.being_in_plain
    cause = cause_of(diagnosis)
    mostly = "Mostly" if plain.plain_fraction > MOST else "Much of the time"
    if diagnosis.stuck_by_fault:
        return f"Stuck in plain decode ({percent(plain.plain_fraction)} of its decoding) by an inflated estimate{cost}."
    if plain.stuck and plain.verdict is Verdict.RIGHT:
        because = f": {cause}" if diagnosis.label is not Kind.PLAIN_RIGHT else ""
        return f"{mostly} in plain decode ({percent(plain.plain_fraction)}), and rightly so{because}{cost}."
    if plain.stuck:
        return f"{mostly} in plain decode ({percent(plain.plain_fraction)}){_how(plain.verdict)}; {cause}{cost}."
    return f"{cause[0].upper()}{cause[1:]}{cost}."


def cause_of(diagnosis: Diagnosis) -> str:
    """The cell's label, for people; of one without a cause, `healthy` only where it is well."""
    finding = next((one for one in diagnosis.findings if one.kind == diagnosis.label), None)
    if finding:
        return words_of(finding)
    return WORDS[diagnosis.label] if diagnosis.is_well or diagnosis.label is not Kind.HEALTHY else uncaused(diagnosis)


def uncaused(diagnosis: Diagnosis) -> str:
    """What is known of a cell that lost throughput, or may have, and whose record shows no cause of it."""
    over = diagnosis.overcharge
    if diagnosis.being_in_plain.unmeasured:
        return f"whether rightly cannot be told: {diagnosis.being_in_plain.unmeasured}"
    if costly := _costly_idling(diagnosis):
        return words_of(costly)
    if over is None and diagnosis.undercharge:
        return _uncharged_drafts(diagnosis.undercharge)
    if over is None:
        unjudged = diagnosis.expected_loss_percent is None
        return "what it chose from is not recorded" if unjudged else "no cause in the record"
    since = ", since before it begins" if over.since_ns is None else ""
    return (
        f"no cause in the record: {over.graph} is charged up to {over.above_percent:.0f} % above what it costs{since}"
    )


def _costly_idling(diagnosis: Diagnosis) -> Finding | None:
    """What made the device idle, and cost more than the choices did: of a cell stuck in plain decode it is not the reason."""
    costly = diagnosis.costly_beside
    is_more = costly is not None and costly.loss_percent >= (diagnosis.expected_loss_percent or 0.0)
    return costly if is_more and diagnosis.overcharge is None and not diagnosis.being_in_plain.stuck else None


def _uncharged_drafts(under: Undercharge) -> str:
    charged, cost = under.charged_ns / 1e6, under.cost_ns / 1e6
    return f"{under.graph} is charged {charged:.1f} ms without its draft executions, and costs {cost:.1f} ms with them"


def _loss_percent(diagnosis: Diagnosis) -> float:
    """What the headline's cause cost; where there is none, what all choices did."""
    if costly := _costly_idling(diagnosis):
        return costly.loss_percent
    if diagnosis.label is Kind.HEALTHY:
        return diagnosis.expected_loss_percent or 0.0 if not diagnosis.is_well else 0.0
    return next((one.loss_percent for one in diagnosis.findings if one.kind == diagnosis.label), 0.0)


def _how(verdict: Verdict) -> str:
    return {Verdict.WRONG: ", and wrongly so", Verdict.MIXED: ", in part wrongly"}.get(verdict, "")


def words_of(finding: Finding) -> str:
    """What a finding is about: by the host's clock, or of one graph alone, nothing can be said of the GPU's."""
    if finding.kind is Kind.HARMLESS_DELAY and finding.loss_percent >= LOSS_WELL_PERCENT:
        return "host delays that turned no decision"
    if isinstance(finding, Waiting) and not finding.is_marked:
        return "one round in flight at a time"
    if isinstance(finding, SpeedChange) and finding.kind is Kind.CLOCK_DRIFT and finding.timed_by_host:
        return "times by the host's clock moved"
    if isinstance(finding, SpeedChange) and not finding.others_seen:
        became = "slower" if finding.ratio > 1 else "faster"
        return f"{', '.join(finding.graphs)} became {became}, and whether others did was not seen"
    return WORDS[finding.kind]


def percent(share: float, digits: int = 0) -> str:
    """A share of 1 in %."""
    return f"{100 * share:.{digits}f} %"


def _figures(recorded: CellExecutions, diagnosis: Diagnosis, tokens_per_s: float | None) -> Iterator[Figure]:
    plain = diagnosis.being_in_plain
    yield Figure("tokens/s", "-" if tokens_per_s is None else f"{tokens_per_s:,.0f}")
    yield Figure("tokens lost by choices", f"{diagnosis.tokens_lost:,.0f}")
    yield Figure("plain fraction", percent(plain.plain_fraction, 1))
    yield Figure("being in plain", f"{plain.verdict}")
    yield Figure("executions", f"{len(recorded.executions):,}")
    if recorded.executions_dropped:
        yield Figure("dropped by sampling", f"{recorded.executions_dropped:,}")
    models = {one.scheduler_cost_model for one in recorded.executions if one.scheduler_cost_model}
    yield Figure("cost model", ", ".join(sorted(models)) or "not recorded")


def _tokens_per_s(executions: Sequence[GraphExecution], elapsed_ns: int) -> float | None:
    """Of all that is stored, while a diagnosis takes one execution of each number. Engines need not report tokens."""
    tokens = [one.batch_tokens_emitted for one in executions if one.batch_tokens_emitted is not None]
    return sum(tokens) * _S_NS / elapsed_ns if tokens and elapsed_ns else None


def _chapters(recorded: CellExecutions, diagnosis: Diagnosis) -> Iterator[Chapter]:
    for finding in diagnosis.findings:
        yield Chapter(_title(finding), tuple(_sentences(finding)), finding.kind)
    if diagnosis.overcharge:
        yield _overcharged(diagnosis.overcharge, recorded)
    if diagnosis.undercharge:
        yield _undercharged(diagnosis.undercharge, recorded)
    told = {span for finding in _inflations(diagnosis) for span in finding.spans}
    where = {"service_instance_id": recorded.engine.service_instance_id, "cell": recorded.cell}
    others = [span for span in diagnosis.being_in_plain.spans if span not in told]
    if others:
        shown_by = (QueryUse("candidates", where),)
        yield Chapter("In plain decode", tuple(Sentence(_said_of(span), shown_by) for span in others))


def _repeated(repeats: Repeats, recorded: CellExecutions) -> Iterator[Chapter]:
    where = {"service_instance_id": recorded.engine.service_instance_id, "cell": recorded.cell}
    sentences = tuple(Sentence(told, (QueryUse("executions", where),)) for told in repeats.told())
    if sentences:
        yield Chapter("Not the executions of one run, each once", sentences)


def _overcharged(over: Overcharge, recorded: CellExecutions) -> Chapter:
    where = {"service_instance_id": recorded.engine.service_instance_id, "cell": recorded.cell}
    uses = tuple(QueryUse(name, where) for name in ("estimate_inflation", "turned_decisions", "candidates"))
    since = "already when the cell begins"
    if over.since_ns is not None:
        since = f"from {(over.since_ns - recorded.executions[0].started_at) / _S_NS:.1f} s into it on"
    return Chapter(
        f"Charged more than it costs: {over.loss_percent:.1f} % lost ({over.tokens_lost:,.0f} tokens)",
        (
            Sentence(
                f"{over.graph} was charged up to {over.charged_ns / 1e6:.1f} ms for the {over.cost_ns / 1e6:.1f} ms that it "
                f"costs, {since}; no execution that is stored had lifted its estimate.",
                uses,
            ),
            Sentence(
                f"By charges like that {counted(over.decisions_turned, 'decision')} over {over.seconds_turned:.1f} s "
                "took a worse graph.",
                uses[:2],
            ),
        ),
    )


def _undercharged(under: Undercharge, recorded: CellExecutions) -> Chapter:
    where = {"service_instance_id": recorded.engine.service_instance_id, "cell": recorded.cell}
    uses = tuple(QueryUse(name, where) for name in ("graph_costs", "candidates"))
    return Chapter(
        f"Charged without its draft executions: {under.loss_percent:.1f} % lost ({under.tokens_lost:,.0f} tokens)",
        (
            Sentence(
                f"{under.graph} was charged {under.charged_ns / 1e6:.1f} ms, and costs {under.cost_ns / 1e6:.1f} ms with the "
                f"{under.drafts_ns / 1e6:.1f} ms on the GPU of the draft executions before it.",
                uses,
            ),
            Sentence(
                f"By charges like that {counted(under.decisions, 'decision')} over {under.seconds:.1f} s took a worse graph; "
                f"{under.better} would have been the best.",
                uses[1:],
            ),
        ),
    )


def _noted(noted: Noted, began_ns: int) -> Iterator[Chapter]:
    """People's marks, told last: they explain nothing by themselves."""
    sentences = [Sentence(_said_of_mark(mark, began_ns), noted.shown_by) for mark in noted.marks]
    if noted.problem:
        sentences = [Sentence(f"The marks could not be read: {noted.problem}.", noted.shown_by)]
    if sentences:
        yield Chapter("What was noted", tuple(sentences))


def _said_of_mark(mark: Mark, began_ns: int) -> str:
    about = f", about {mark.about}" if mark.about else ""
    by = f", by {mark.author}" if mark.author else ""
    return f"{placed(mark, began_ns)}: {mark.text}{about}{by} ({mark.at:%Y-%m-%d %H:%M:%S} UTC)."


def placed(mark: Mark, began_ns: int) -> str:
    """Where a mark lies: `12 min before the cell`, or `4.2 s into it`."""
    after_s = after_began_ns(mark, began_ns) / _S_NS
    if after_s >= 0:
        return f"{after_s:.1f} s into it"
    return f"{-after_s:.0f} s before the cell" if after_s > -100 else f"{-after_s / 60:.0f} min before the cell"


def after_began_ns(mark: Mark, began_ns: int) -> int:
    """How long after the first submission a mark lies; below 0 where it lies before it."""
    return round((mark.at - datetime.fromtimestamp(0, UTC)).total_seconds() * 1000) * 1_000_000 - began_ns


def _title(finding: Finding) -> str:
    words = words_of(finding)
    parts = [f"{words[0].upper()}{words[1:]}"]
    worth = LOSS_WELL_PERCENT if finding.kind in (Kind.HARMLESS_DELAY, Kind.FEEDBACK_BOUND) else LOSS_TOLD_PERCENT
    if finding.loss_percent >= worth:
        parts.append(f"{finding.loss_percent:.1f} % lost ({finding.tokens_lost:,.0f} tokens)")
    parts.append(f"confidence {finding.confidence:.2f}" + (", a lead" if finding.confidence < UNCERTAIN else ""))
    return ": ".join([parts[0], "; ".join(parts[1:])])


def _sentences(finding: Finding) -> Iterator[Sentence]:
    for evidence in finding.evidence:
        yield Sentence(evidence.says, evidence.queries)


def _said_of(span: PlainSpan) -> str:
    verdict = "rightly" if span.right else "wrongly"
    if span.unmeasured:
        verdict = f"whether rightly cannot be told ({span.unmeasured}),"
    ended = f"{span.ended.of_a_cell}" + (f" of {span.ended.graph}" if span.ended.graph else "")
    return (
        f"From sequence {span.from_sequence} to {span.to_sequence}, {span.seconds:.1f} s and {span.decisions:,} "
        f"decisions, {verdict} in plain decode: believed {_lead(span.believed_margin_percent, span.believed_best_other)} "
        f"at first, and truly {_lead(span.true_margin_percent, span.truly_best_other)} over them{_unlike_stuck_plain(span)}; its "
        f"end: {ended}."
    )


def _unlike_stuck_plain(span: PlainSpan) -> str:
    """Why the fleet's figure of gain says otherwise, where it does."""
    if (span.expected_margin_percent < 0) == (span.true_margin_percent < 0):
        return ""
    lead = _lead(span.expected_margin_percent, span.expected_best_other)
    return f" ({lead} at the tokens that the scheduler expected, as stuck_plain counts)"


def _lead(margin_percent: float, other: str) -> str:
    where = "behind" if margin_percent < 0 else "ahead of"
    return f"{abs(margin_percent):.1f} % {where} {other or 'the others'}"


def _inflations(diagnosis: Diagnosis) -> Iterator[EstimateInflation]:
    return (finding for finding in diagnosis.findings if isinstance(finding, EstimateInflation))


def poisons_of(diagnosis: Diagnosis) -> tuple[Poison, ...]:
    """Every execution that inflated an estimate to harm."""
    return tuple(
        sorted(
            (poison for finding in _inflations(diagnosis) for poison in (*finding.poisons, *finding.also_poisons)),
            key=lambda poison: poison.at_ns,
        )
    )


def _strip(executions: Sequence[GraphExecution], began_ns: int, ended_ns: int) -> tuple[Second, ...]:
    """Wall time by the second in which a round was observed to end, so that a second's shares may pass 1 a little."""
    last = max(0, round((ended_ns - began_ns) / _S_NS) - 1)
    spent = [[0.0, 0.0, 0.0] for _ in range(last + 1)]
    for one in executions:
        second = min(last, max(0, (one.started_at + one.duration_ns - began_ns) // _S_NS))
        spent[second][_column_of(one)] += one.graph_wall_time_ns / _S_NS
    return tuple(Second(*shares) for shares in spent)


def _column_of(execution: GraphExecution) -> int:
    """Where in `Second` its time goes."""
    if execution.graph_purpose is not Purpose.ORDINARY:
        return 2
    return {GraphKind.PLAIN_DECODE: 0, GraphKind.SPECULATIVE: 1}.get(execution.graph_kind, 2)

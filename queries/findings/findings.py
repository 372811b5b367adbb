"""The types: what a diagnosis says, and what it rests on.

Instants are nanoseconds since the Unix epoch on the engine's own clock, fractions lie between 0 and 1.
A confidence is the chance, as judged from the cell's own scatter, that the finding stands when the
cell is recorded without loss and without noise; below `UNCERTAIN` a reader should treat it as a lead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

UNCERTAIN: Final = 0.7
"""A finding of less confidence is a lead, not a verdict."""


class Kind(StrEnum):
    """What a finding is about, in the field's terms."""

    ESTIMATE_INFLATION = "estimate_inflation"
    """Delays inflated estimates, and so moved at least 1 s of decisions to a graph worse by over 1 %: a fault."""
    PLAIN_RIGHT = "plain_right"
    """The engine decodes plainly much of the time, and plain decode is truly the better choice: no fault."""
    HOST_BOUND = "host_bound"
    """The host takes longer for a round than the device, round after round: the device idles before pipelined rounds."""
    CPU_CONTENTION = "cpu_contention"
    """The host is late irregularly, on rounds of every graph, throughout the cell."""
    DELAY_BURSTS = "delay_bursts"
    """Three or more rounds in a row met a stumble of the host."""
    HARMLESS_DELAY = "harmless_delay"
    """The host stumbled, and no decision became worse by it."""
    ACCEPTANCE_COLLAPSE = "acceptance_collapse"
    GRAPH_REGRESSION = "graph_regression"
    """One graph's GPU time rose against its own history while the others' did not."""
    CLOCK_DRIFT = "clock_drift"
    """All graphs' GPU times moved together: clocks, heat, a power limit. Of times by the host's clock: whatever ran
    beside them, too."""
    FEEDBACK_BOUND = "feedback_bound"
    """Most rounds need completion feedback, so that the device idles for the handoff. As it must be."""
    BATCH_CHANGED = "batch_changed"
    """GPU times go with the size of the batch, which changed: they are compared at like batch sizes only. No fault."""
    IDLE = "idle"
    """The engine had no work."""
    EXECUTIONS_LOST = "executions_lost"
    CLOCK_AHEAD = "clock_ahead"
    """The host's calendar clock is ahead of the others'."""
    NO_SPECULATION = "no_speculation"
    """The engine has no speculative graph to choose."""
    HEALTHY = "healthy"
    """Never a finding, only a label: no cause that costs throughput was found. Whether none was lost: `Diagnosis.is_well`."""


class Quantity(NamedTuple):
    """A measured figure."""

    name: str
    value: float
    unit: str
    """As in docs/metrics.md: `ns`, `s`, `%`, `tokens`, `tokens/s`, `fraction`, `executions`, `rounds`, `ratio`, ''."""


class QueryUse(NamedTuple):
    """A query of the catalogue that shows the evidence; `queries.runner.asked(name, parameters)` is its SQL."""

    name: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class Evidence:
    """One statement that a finding rests on."""

    says: str
    """One sentence. Its figures are in `quantities`."""
    sequences: tuple[int, ...] = ()
    """`graph_sequence` of the executions that show it, `SEQUENCES_MAX` at most."""
    quantities: tuple[Quantity, ...] = ()
    queries: tuple[QueryUse, ...] = ()


SEQUENCES_MAX: Final = 32
LOSS_WELL_PERCENT: Final = 2.0
"""Choices of a healthy engine lose less of its throughput: near-ties, and what it is to learn anew."""


def tokens_short(emitted: int, share: float) -> float:
    """Tokens that a cell would have emitted besides those it did, had it not lost that share of its throughput."""
    return emitted * share / max(1 - share, 0.01)


@dataclass(frozen=True)
class Finding:
    """One thing found in a cell."""

    kind: Kind
    since_ns: int
    until_ns: int
    fraction: float
    """Share of the cell's time that it concerns."""
    loss_percent: float
    """Throughput lost by it, of what the best choices would have given; 0 where it costs none or cannot be told."""
    tokens_lost: float
    confidence: float
    """Between 0 and 1; see the module."""
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Poison:
    """An execution whose idle gap lifted its own graph's estimate."""

    graph: str
    sequence: int | None
    """`None`: the estimate rose, and the execution that lifted it was never recorded."""
    span_id: str
    """Hexadecimal; '' where the execution or its engine is not known."""
    at_ns: int
    """When its completion was observed; else when the first decision was made that knew of it."""
    purpose: str
    gpu_time_ns: int | None
    wall_time_ns: int | None
    queue_depth: int | None
    estimate_before_ns: int
    estimate_after_ns: int

    @property
    def lift_ns(self) -> int:
        """How far the estimate rose."""
        return self.estimate_after_ns - self.estimate_before_ns


class EndedBy(StrEnum):
    """What ended a stretch of plain decode."""

    REFRESH = "refresh after expiry"
    """A refresh measured the graph that was chosen next."""
    PLAIN_INFLATED = "estimate of plain decode inflated"
    CHANGED = "estimates or acceptance changed"
    STILL_GOING = "still going when the recording ends"


class Ending(NamedTuple):
    """What ended a stretch, by which graph and execution where one did."""

    by: EndedBy
    graph: str = ""
    sequence: int | None = None

    @property
    def of_a_cell(self) -> str:
        """What ended it, for people who asked for a cell: the engine may go on after it, and does nearly always."""
        return "still going when the cell ends" if self.by is EndedBy.STILL_GOING else str(self.by)


@dataclass(frozen=True)
class PlainSpan:
    """Ordinary plain decode without an ordinary speculative round between, for 1 s or more."""

    from_sequence: int
    to_sequence: int
    since_ns: int
    until_ns: int
    decisions: int
    right: bool
    """Plain decode was truly best, within 1 %, at most of these decisions."""
    truly_best_fraction: float
    believed_margin_percent: float
    """Lead of plain decode over the best other graph when it began to win, as the scheduler believed."""
    believed_best_other: str
    true_margin_percent: float
    """Mean lead over the span at true costs and acceptance; negative where plain decode was the worse choice."""
    truly_best_other: str
    tokens_lost: float
    poisoned_by: tuple[Poison, ...]
    """What had lifted the estimates of graphs that were truly better."""
    poisoned_before: bool
    """Such an estimate was inflated already when the cell begins; what had lifted it is in `poisoned_by` if stored."""
    ended: Ending
    unmeasured: str = ""
    """Why nobody can say whether it was right: which cost was not measured; '' where it can be said."""
    expected_margin_percent: float = 0.0
    """The same lead at true costs, but the tokens that the scheduler expected, as `stuck_plain` has it ..."""
    expected_best_other: str = ""
    """... and over which graph."""

    @property
    def seconds(self) -> float:
        """Length."""
        return (self.until_ns - self.since_ns) / 1e9


class Turned(NamedTuple):
    """Decisions that inflated estimates turned from a graph to a worse one."""

    from_graph: str
    to_graph: str
    decisions: int
    seconds: float
    tokens_lost: float


@dataclass(frozen=True)
class EstimateInflation(Finding):
    """The scheduler charged graphs more than they cost, and chose worse ones."""

    poisons: tuple[Poison, ...]
    """In order of time; of those graphs that decisions were turned from."""
    poisoned_before: bool
    """Some estimate was inflated already when the cell begins; what had lifted it is in `poisons` if stored."""
    turned: tuple[Turned, ...]
    decisions_turned: int
    seconds_turned: float
    spans: tuple[PlainSpan, ...]
    """Stretches of plain decode that it caused."""
    stuck: bool
    """It is what keeps the cell in plain decode."""
    also_poisons: tuple[Poison, ...] = ()
    """In order of time; of further graphs, each of which charged fairly would have kept decisions from turning too."""


@dataclass(frozen=True)
class Overcharge:
    """Graphs were charged more than they cost and worse ones chosen, and nothing in the record had lifted the charges.

    No finding, since no cause is known: a scheduler with a wrong memory, or a delay before what is stored.
    """

    graph: str
    """The one that decisions were turned from at the greatest loss."""
    charged_ns: int
    """The most that it was charged at such a decision."""
    cost_ns: int
    """What it truly cost then."""
    since_ns: int | None
    """The first decision since which it was charged so; `None`: already when the cell begins."""
    decisions_turned: int
    """Of all graphs, like what follows."""
    seconds_turned: float
    loss_percent: float
    tokens_lost: float

    @property
    def above_percent(self) -> float:
        """How far the charge is above the cost."""
        return 100 * (self.charged_ns / self.cost_ns - 1)


@dataclass(frozen=True)
class Undercharge:
    """Speculative rounds were charged without their draft executions, and chosen where another graph is truly better.

    No finding: nothing happened to the engine; it does not count the drafts.
    """

    graph: str
    """The one that lost most."""
    better: str
    """What would most often have been the best in its place."""
    charged_ns: int
    cost_ns: int
    """What it truly costs, its drafts included."""
    drafts_ns: int
    """GPU time of the draft executions of a round. All three are medians of its decisions."""
    decisions: int
    """Of all such graphs, like what follows."""
    seconds: float
    loss_percent: float
    tokens_lost: float


@dataclass(frozen=True)
class HostLate(Finding):
    """`host_bound`, `cpu_contention`, `delay_bursts` or `harmless_delay`."""

    rounds: int
    """Rounds that the host was late with."""
    idle_ns: int
    """Device time lost before them."""
    graphs: tuple[str, ...]
    host_time_ratio: float
    """Median host time of those rounds over their graph's GPU time."""


@dataclass(frozen=True)
class Waiting(Finding):
    """`feedback_bound`."""

    is_marked: bool
    """The sender marks the rounds as needing completion feedback. Else the engine keeps one in flight at a time, and what
    the device idles meanwhile is throughput that it loses."""


@dataclass(frozen=True)
class SpeedChange(Finding):
    """`clock_drift` or `graph_regression`."""

    graphs: tuple[str, ...]
    ratio: float
    """GPU time after over before."""
    timed_by_host: bool = False
    """The times were taken by the host's clock, so that they tell nothing of the GPU's."""
    others_seen: bool = True
    """Other graphs were executed before and after. Where none was, one that slowed by itself looks like the clock."""


@dataclass(frozen=True)
class AcceptanceCollapse(Finding):
    """Drafts are accepted much less than they were."""

    acceptance_before: float
    """Chance that a draft is accepted once all before it in its lane were."""
    acceptance_after: float


class Verdict(StrEnum):
    """On being in plain decode."""

    RIGHT = "right"
    WRONG = "wrong"
    MIXED = "mixed"
    NONE = "none"
    """Hardly any plain decode."""
    NO_CHOICE = "no choice"
    """There is no speculative graph."""
    UNKNOWN = "unknown"
    """What the scheduler chose from was not recorded, or not what it costs at that batch size: nobody can say."""


@dataclass(frozen=True)
class BeingInPlain:
    """Whether plain decode was the right choice where it was chosen."""

    verdict: Verdict
    plain_fraction: float
    """Share of ordinary decoding wall time spent in plain decode, as `plain_fraction` in docs/metrics.md."""
    stuck: bool
    """As `stuck_plain` has it: that share is above 0.3 although there is a speculative graph, and the cell decoded for
    3 s. No fault by itself."""
    truly_best_fraction: float | None
    """Of the wall time in plain decode: where it was truly best, within 1 %. `None` without any."""
    spans: tuple[PlainSpan, ...]
    unmeasured: str = ""
    """As `PlainSpan.unmeasured`, of most of the time in plain decode."""

    @property
    def seconds_wrong(self) -> float:
        """Length of the spans in which plain decode was the worse choice."""
        return sum(span.seconds for span in self.spans if not (span.right or span.unmeasured))


@dataclass(frozen=True)
class Diagnosis:
    """Everything that is said of one cell."""

    label: Kind
    also: tuple[Kind, ...]
    findings: tuple[Finding, ...]
    """The most costly first."""
    being_in_plain: BeingInPlain
    expected_loss_percent: float | None
    """Throughput lost by all choices against the truly best ones, whatever the reason; delays themselves are not
    counted. `None`: no choice was recorded."""
    tokens_lost: float
    tokens_emitted: int
    """All that was emitted: full rejections count with the lane's own token, never as missing. Of one execution of each
    submission number, as everything here: where several runs send under one name, no sum over them."""
    seconds: float
    """From the first submission to the last observed completion."""
    overcharge: Overcharge | None = None
    """What wrong charges cost that no finding explains."""
    undercharge: Undercharge | None = None
    """What it cost to leave draft executions out of the charges."""

    @property
    def is_well(self) -> bool:
        """Whether the label `healthy` is the whole truth.

        Not where plain decode was mostly chosen and not known to be right, nor where its choices, or a host that stumbled or
        waited, lost what is worth a word: the label is given by other causes alone.
        """
        plain = self.being_in_plain
        in_doubt = plain.stuck and plain.verdict not in (Verdict.RIGHT, Verdict.NO_CHOICE)
        lost = (self.expected_loss_percent or 0.0) >= LOSS_WELL_PERCENT
        return self.label is Kind.HEALTHY and not (self.overcharge or in_doubt or lost or self.costly_beside)

    @property
    def costly_beside(self) -> Finding | None:
        """What costs the most of what no cell is called by, where that is worth a word: the device idled, for all choices."""
        costly = max(self.findings, key=lambda finding: finding.loss_percent, default=None)
        is_costly = costly is not None and costly.loss_percent >= LOSS_WELL_PERCENT
        return costly if is_costly and self.label is Kind.HEALTHY else None

    @property
    def stuck_by_fault(self) -> bool:
        """Whether estimate inflation keeps the cell in plain decode. Never where plain decode was right."""
        return any(isinstance(finding, EstimateInflation) and finding.stuck for finding in self.findings)

"""Every rule an engine's spans are held against, once: what it asks, how grave a breach is, how to mend it.

`docs/conformance.md` lists them, and a test holds the two together.
"""

from enum import StrEnum
from typing import Final, NamedTuple

_CONTRACT: Final = "docs/contract.md"
_EXECUTION: Final = f"{_CONTRACT}#what-a-graph-execution-is"
_SPAN: Final = f"{_CONTRACT}#attributes-of-the-span"
_RESOURCE: Final = f"{_CONTRACT}#attributes-of-the-resource"
_IDS: Final = f"{_CONTRACT}#ids"
_REFUSED: Final = f"{_CONTRACT}#what-is-refused"
_CLOCKS: Final = f"{_CONTRACT}#clock-trouble"
_LOSSES: Final = f"{_CONTRACT}#losses"
_EXAMPLE: Final = f"{_CONTRACT}#an-example-complete"


class Severity(StrEnum):
    """How grave a breach is."""

    ERROR = "error"
    """The collector refuses it, or what is computed from it will be wrong."""
    WARNING = "warning"
    """It is stored, and something that could be told from it cannot."""


class Rule(NamedTuple):
    """One rule."""

    id: str
    sentence: str
    """What the engine should do."""
    severity: Severity
    mend: str
    """What to change in an engine that does not."""
    section: str
    """Where the contract says so."""


def _error(rule_id: str, section: str, sentence: str, mend: str) -> Rule:
    return Rule(rule_id, sentence, Severity.ERROR, mend, section)


def _warning(rule_id: str, section: str, sentence: str, mend: str) -> Rule:
    return Rule(rule_id, sentence, Severity.WARNING, mend, section)


# ---- of requests, and of each span

REQUEST_UNREADABLE: Final = _error(
    "request-unreadable",
    _EXAMPLE,
    "Every request is OTLP that the collector can read.",
    "send an ExportTraceServiceRequest in protobuf or JSON, within the collector's limits",
)
SPAN_NAME: Final = _error(
    "span-name",
    _EXECUTION,
    "A graph execution's span is named execute_graph and its graph.name.",
    "name the span `execute_graph {graph.name}`: under another name it is not kept",
)
SPAN_KIND: Final = _warning(
    "span-kind", _EXECUTION, "A graph execution's span is of kind INTERNAL.", "set the kind to INTERNAL (1)"
)
SPAN_ID: Final = _error(
    "span-id-invalid",
    _IDS,
    "Trace ids are 16 bytes and span ids 8, neither all zero.",
    "make the ids as the contract says; in JSON they are hex",
)
SPAN_TIMES: Final = _error(
    "span-times",
    _REFUSED,
    "A span starts and ends, in this order, within an hour.",
    "set start to submission and end to observed completion, both in Unix nanoseconds",
)
ATTRIBUTE_MISSING: Final = _error(
    "attribute-missing",
    _REFUSED,
    "Required attributes are there.",
    "set it on every span; service.instance.id stands in the resource",
)
ATTRIBUTE_TYPE: Final = _error(
    "attribute-type",
    _REFUSED,
    "An attribute's value is of the contract's type.",
    "send integers as intValue, flags as boolValue, arrays as arrayValue; numbers never as text",
)
ATTRIBUTE_NOT_UTF8: Final = _error(
    "attribute-not-utf8", _REFUSED, "Text is UTF-8.", "encode names as UTF-8 before they are sent"
)
ENUM_UNKNOWN: Final = _error(
    "enum-unknown",
    _REFUSED,
    "An enumerated attribute has one of its values.",
    "send one of the contract's values, in lower case",
)
OUT_OF_RANGE: Final = _error(
    "out-of-range",
    _REFUSED,
    "Counts and times are not negative, and no time is above an hour.",
    "send a difference of two readings of one monotonic clock, in ns; leave out what was not measured",
)
CANDIDATES_LENGTH: Final = _error(
    "candidates-length",
    _REFUSED,
    "The three arrays of candidates have one length.",
    "append to all three for each candidate, or send none of them",
)
ATTRIBUTE_UNKNOWN: Final = _warning(
    "attribute-unknown",
    _SPAN,
    "Attributes under the contract's prefixes are the contract's own.",
    "correct the name, or use a prefix of your own: what the contract does not name is not kept",
)
ATTRIBUTE_MISPLACED: Final = _warning(
    "attribute-misplaced",
    _RESOURCE,
    "What describes the engine stands in the resource, what describes an execution on its span.",
    "move it to the other of the two: it is not read where it stands",
)
ATTRIBUTE_REPEATED: Final = _warning(
    "attribute-repeated", _SPAN, "An attribute is sent once.", "set it once: of repeated ones only one is read"
)
RESOURCE_INCOMPLETE: Final = _warning(
    "resource-incomplete",
    _RESOURCE,
    "The resource names its service, host and engine.",
    "set it in the resource: pages and alerts group by it",
)

# ---- of each execution

GPU_ABOVE_WALL: Final = _error(
    "gpu-above-wall",
    _CLOCKS,
    "GPU time is part of the wall time.",
    "wall time is the device's idle gap before the execution + its GPU time; check which event starts each",
)
GPU_ABOVE_SPAN: Final = _error(
    "gpu-above-span",
    _EXECUTION,
    "An execution runs on the device between its submission and its observed completion.",
    "end the span at the observed completion; check the anchor from device time to host time",
)
CLOCK_ROUNDING: Final = _warning(
    "clock-rounding",
    _CLOCKS,
    "Device and host clocks agree to the nanosecond.",
    "renew the anchor from device time to host time more often; what is left is stored and counted",
)
CLOCK_FUTURE: Final = _error(
    "clock-future",
    _EXECUTION,
    "A span ends before it is received.",
    "send Unix time in ns (UTC), and keep the host's clock synchronised",
)
CLOCK_PAST: Final = _error(
    "clock-past",
    _EXECUTION,
    "A span starts in this century's second decade or later.",
    "send Unix time in ns, not a monotonic reading and not µs or ms",
)
CLOCK_LATE: Final = _warning(
    "clock-late",
    _EXECUTION,
    "What comes live was measured within the hour.",
    "synchronise the host's clock, or send batches sooner",
)
TOKENS_ACCEPTED: Final = _error(
    "tokens-accepted",
    _SPAN,
    "No more draft tokens are accepted than were verified.",
    "count drafts and acceptances of the same execution, over the same lanes",
)
KIND_DRAFTED: Final = _error(
    "kind-drafted",
    _SPAN,
    "An execution of kind plain_decode verifies no draft tokens.",
    "send graph.kind speculative where the graph verifies drafts: shares of plain decode are told from it",
)
BUDGET_EXCEEDED: Final = _error(
    "budget-exceeded",
    _SPAN,
    "No more positions are verified than batch.verification_budget.",
    "count the budget over all lanes, each lane's own token included, and only drafts that were verified",
)
ESTIMATE_MISSING: Final = _warning(
    "estimate-missing",
    _SPAN,
    "A decoding execution tells what the scheduler believed it would cost.",
    "record scheduler.estimate_ns and scheduler.cost_model when the graph is chosen",
)
ESTIMATE_PARTS: Final = _warning(
    "estimate-parts",
    _SPAN,
    "The estimate is the sum of its GPU and handoff parts.",
    "record all three from the same decision",
)
CANDIDATES_MISSING: Final = _warning(
    "candidates-missing",
    _SPAN,
    "An estimate comes with all graphs that were chosen from.",
    "record the three arrays of candidates: without them no replay and no margin",
)
CANDIDATES_WITHOUT_CHOSEN: Final = _error(
    "candidates-without-chosen",
    _SPAN,
    "The chosen graph is one of the candidates.",
    "put graph.name among scheduler.candidate_graphs, spelt the same",
)
CANDIDATE_ESTIMATE: Final = _warning(
    "candidate-estimate",
    _SPAN,
    "The chosen candidate's estimate is scheduler.estimate_ns.",
    "record both from the same decision, in ns",
)
FEEDBACK_REASON: Final = _warning(
    "feedback-reason",
    _SPAN,
    "A reason for completion feedback comes with the flag.",
    "set graph.completion_feedback to true where there is a reason",
)
AFTER_IDLE_IN_FLIGHT: Final = _error(
    "after-idle-in-flight",
    _SPAN,
    "An execution after idle was submitted to an empty queue.",
    "set graph.after_idle only where the engine had no work at all",
)
CELL_WITHOUT_ID: Final = _warning(
    "cell-without-id",
    _SPAN,
    "Arm, position and concurrency of a cell come with its id.",
    "set cell.id, or none of them",
)
CELL_INCONSISTENT: Final = _error(
    "cell-inconsistent",
    _SPAN,
    "All executions of a cell agree on its arm, position and concurrency.",
    "name a new cell whenever one of them changes",
)

# ---- of an engine's executions in the order of their submission

UNIT: Final = _error(
    "unit",
    _EXECUTION,
    "Times are in nanoseconds.",
    "multiply by the factor that the unit wants: _ns means integer nanoseconds",
)
TOKENS_EMITTED: Final = _error(
    "tokens-emitted",
    _SPAN,
    "Accepted draft tokens are given out, save those of requests that ended.",
    "count all tokens given out over all lanes, each lane's own and the accepted drafts: tokens/s are told from it",
)
SPAN_ID_REPEATED: Final = _error(
    "span-id-repeated",
    _IDS,
    "No two executions share trace id and span id.",
    "derive the span id from instance and sequence, or draw it at random",
)
SENT_TWICE: Final = _warning(
    "sent-twice",
    _IDS,
    "A span is sent once.",
    "send again only what was not acknowledged, byte for byte",
)
SEQUENCE_REPEATED: Final = _error(
    "sequence-repeated",
    _LOSSES,
    "No submission number of an engine run comes twice.",
    "count submissions from 0; each run and each rank has a service.instance.id of its own",
)
SEQUENCE_GAP: Final = _error(
    "sequence-gap",
    _LOSSES,
    "Submission numbers have no gaps.",
    "count only submissions that are recorded; look for a full buffer or a sampler between engine and here",
)
DEPTH_NOT_RETURNING: Final = _error(
    "depth-not-returning",
    _SPAN,
    "Queue depth is 0 where every execution before has completed.",
    "count down at observed completion, failures and cancellations too",
)
DEPTH_NEVER_ZERO: Final = _warning(
    "depth-never-zero",
    _SPAN,
    "Queue depth returns to 0 now and then.",
    "count submissions in flight without the one being submitted; if it is right, spans never cease to overlap",
)
DEPTH_TOO_LOW: Final = _warning(
    "depth-too-low",
    _SPAN,
    "Queue depth is not 0 while an execution before is in flight.",
    "count every submission whose completion was not yet observed",
)
WALL_TIME: Final = _error(
    "wall-time",
    _EXECUTION,
    "Wall time is the device's idle gap before the execution + its GPU time.",
    "take the end on the device less the later of the end before it and, after idle, the own submission",
)
IDLE_UNMARKED: Final = _warning(
    "idle-unmarked",
    _SPAN,
    "The first execution after the engine had no work says so.",
    "set graph.after_idle; if there was work, the host's clock jumped or the host stood still",
)
CLOCK_BACKWARDS: Final = _error(
    "clock-backwards",
    _EXECUTION,
    "Submissions start in the order of their numbers.",
    "take intervals from a monotonic clock, and number submissions as they are submitted",
)

RULES: Final[tuple[Rule, ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
"""All of them, in the order in which they are told."""

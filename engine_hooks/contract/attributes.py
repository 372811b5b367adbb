"""The contract's table: every attribute with its type, unit, bounds and meaning, once.

The mapping, the validation, the collector's SQL, the columns and `docs/contract.md` all follow it.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from engine_hooks.contract import names
from engine_hooks.contract.names import LONGEST_TIME_NS


class AttributeType(StrEnum):
    """How a value travels in OTLP. The text is what a refusal says was expected."""

    STRING = "a string"
    INTEGER = "an integer"
    """`intValue`; an integral `doubleValue` is taken too (JavaScript engines have no other number)."""
    NUMBER = "a number"
    """`doubleValue` or `intValue`; finite."""
    BOOLEAN = "a boolean"
    STRINGS = "an array of strings"
    INTEGERS = "an array of integers"
    NUMBERS = "an array of numbers"


class Attribute(NamedTuple):
    """One attribute of a span or of its resource."""

    name: str
    type: AttributeType
    meaning: str
    unit: str = ""
    required: bool = False
    values: tuple[str, ...] = ()
    """The enumerated values; empty where any will do."""
    lowest: int | None = None
    highest: int | None = None
    """Bounds, inclusive, of the number or of each number of an array. A value outside is refused."""

    @property
    def column(self) -> str:
        """The column and Python field."""
        return names.column_of(self.name)

    @property
    def is_array(self) -> bool:
        return self.type in _ARRAYS


_ARRAYS = frozenset({AttributeType.STRINGS, AttributeType.INTEGERS, AttributeType.NUMBERS})


def _string(name: str, meaning: str, *, required: bool = False) -> Attribute:
    return Attribute(name, AttributeType.STRING, meaning, required=required)


def _enum(name: str, values: Iterable[str], meaning: str, *, required: bool = False) -> Attribute:
    return Attribute(name, AttributeType.STRING, meaning, required=required, values=tuple(values))


def _flag(name: str, meaning: str) -> Attribute:
    return Attribute(name, AttributeType.BOOLEAN, meaning)


def _count(name: str, unit: str, meaning: str, *, required: bool = False) -> Attribute:
    return Attribute(name, AttributeType.INTEGER, meaning, unit, required, lowest=0)


def _time(name: str, meaning: str, *, required: bool = False, lowest: int = 0) -> Attribute:
    return Attribute(name, AttributeType.INTEGER, meaning, "ns", required, lowest=lowest, highest=LONGEST_TIME_NS)


SPAN_ATTRIBUTES: tuple[Attribute, ...] = (
    _string(names.GRAPH_NAME, "The engine's own name of the graph: `P128`, `decode`, `prefill-2048`.", required=True),
    _enum(names.GRAPH_KIND, names.GraphKind, "What the graph computes.", required=True),
    _enum(names.GRAPH_PURPOSE, names.Purpose, "Why it was executed; missing is `ordinary`."),
    _count(
        names.GRAPH_SEQUENCE,
        "",
        "Submission number in this engine run, from 0 or 1 on; a gap shows lost records.",
        required=True,
    ),
    _time(names.GRAPH_GPU_TIME_NS, "How long the graph ran on the device.", required=True),
    _time(
        names.GRAPH_WALL_TIME_NS,
        "How long it held up the pipeline: the device's idle gap before it + its GPU time.",
        required=True,
    ),
    _time(
        names.GRAPH_GPU_START_OFFSET_NS,
        "Device start - submission. Negative is clock trouble.",
        lowest=-LONGEST_TIME_NS,
    ),
    _enum(names.GRAPH_GPU_TIME_SOURCE, names.GpuTimeSource, "Which clock measured the GPU time."),
    _count(
        names.GRAPH_QUEUE_DEPTH,
        "submissions",
        "Submissions already in flight when this one was submitted; 0 is drained.",
    ),
    _flag(
        names.GRAPH_AFTER_IDLE, "The engine had no work before it: no interval may span that idle. Missing is false."
    ),
    _flag(
        names.GRAPH_COMPLETION_FEEDBACK,
        "The next submission needs this one's results on the host first. Missing is false.",
    ),
    _enum(names.GRAPH_COMPLETION_FEEDBACK_REASON, names.FeedbackReason, "Why it does."),
    _count(names.BATCH_LANES, "lanes", "Sequences in the batch."),
    _count(names.BATCH_TOKENS_DRAFTED, "tokens", "Draft tokens verified, over all lanes."),
    _count(names.BATCH_TOKENS_ACCEPTED, "tokens", "Draft tokens accepted, over all lanes."),
    _count(names.BATCH_TOKENS_EMITTED, "tokens", "Tokens given out, over all lanes."),
    _count(
        names.BATCH_VERIFICATION_BUDGET,
        "tokens",
        "Positions the graph verifies at most, each lane's own token included.",
    ),
    _string(names.SCHEDULER_COST_MODEL, "The cost model behind the choice: `exposed_mean`, `drained_share`, your own."),
    _time(names.SCHEDULER_ESTIMATE_NS, "What the scheduler charged this graph when it chose it: GPU + handoff."),
    _time(names.SCHEDULER_ESTIMATE_GPU_NS, "The GPU part of that estimate."),
    _time(names.SCHEDULER_ESTIMATE_HANDOFF_NS, "The handoff part of that estimate."),
    Attribute(
        names.SCHEDULER_EXPECTED_TOKENS,
        AttributeType.NUMBER,
        "Tokens the scheduler expected of this execution.",
        "tokens",
    ),
    Attribute(
        names.SCHEDULER_CANDIDATE_GRAPHS,
        AttributeType.STRINGS,
        "Every graph it chose from, the chosen one among them; the three arrays have one length.",
    ),
    Attribute(
        names.SCHEDULER_CANDIDATE_ESTIMATES_NS,
        AttributeType.INTEGERS,
        "What each candidate was charged.",
        "ns",
        lowest=0,
        highest=LONGEST_TIME_NS,
    ),
    Attribute(
        names.SCHEDULER_CANDIDATE_EXPECTED_TOKENS,
        AttributeType.NUMBERS,
        "Tokens expected of each candidate.",
        "tokens",
    ),
    _string(names.CELL_ID, "The benchmark's name for the cell; without it, cells are 30 s windows."),
    _string(names.CELL_ARM, "Which arm of a comparison the cell belongs to."),
    Attribute(names.CELL_POSITION, AttributeType.INTEGER, "The cell's place in the order of the benchmark."),
    Attribute(names.CELL_CONCURRENCY, AttributeType.INTEGER, "Requests the benchmark kept in flight.", "requests"),
)

RESOURCE_ATTRIBUTES: tuple[Attribute, ...] = (
    _string(names.SERVICE_INSTANCE_ID, "Unique for one run of one engine process.", required=True),
    _string(names.SERVICE_NAME, "The deployment the engine serves."),
    _string(names.HOST_NAME, "The host."),
    _string(names.ENGINE_NAME, "The engine: `vllm`, `sglang`, your own."),
    _string(names.ENGINE_VERSION, "Its version."),
    _string(names.ENGINE_PACKAGE, "The model package it runs."),
    _string(names.ENGINE_RECIPE, "The recipe (the set of engine settings) it runs with."),
    Attribute(names.ENGINE_TENSOR_PARALLEL, AttributeType.INTEGER, "GPUs that share one layer.", "GPUs"),
    Attribute(names.GPU_IDS, AttributeType.STRINGS, "Identifiers of the GPUs, as strings."),
)

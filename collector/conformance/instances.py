"""What each engine instance's executions break together, for a bounded number of instances, cells and spans."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

from collector.conformance import rules
from collector.conformance.findings import Breach, Findings
from collector.conformance.history import History
from collector.conformance.in_order import InOrder, Submission
from collector.conformance.tokens import Tokens
from collector.conformance.units import Units
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.span import GraphSpan

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A mapping that forgets what has not been looked at for longest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()

    def first(self, key: Hashable, value: Value) -> Value:
        """The value that was kept first under a key: this one, if there is none."""
        kept = self._kept.setdefault(key, value)
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return kept


class _Instance(NamedTuple):
    """One engine instance."""

    in_order: InOrder
    history: History
    units: Units
    tokens: Tokens


class Instances:
    """Every engine instance that is sending."""

    INSTANCES_MAX: Final = 64
    """Instances kept at a time; of a further one, the one silent for longest is told of and let go."""
    SPANS_MAX: Final = 65_536
    CELLS_MAX: Final = 4_096

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._instances: OrderedDict[str, _Instance] = OrderedDict()
        self._spans: Recent[tuple[Any, ...]] = Recent(self.SPANS_MAX)
        self._cells: Recent[tuple[Any, ...]] = Recent(self.CELLS_MAX)
        self.seen = 0
        """Instances met so far; one that was let go and comes again counts again."""

    def take(self, instance_id: str, fields: GraphSpan, submission: Submission) -> None:
        """Take one span of an instance."""
        if self._came_before(instance_id, fields, submission):
            return
        instance = self._instance(instance_id)
        if submission.execution is not None:
            instance.units.take(submission.execution, submission.span)
            instance.tokens.take(submission.execution, submission.span)
            self._check_cell(instance_id, submission.execution, submission.span)
        if instance.in_order.repeats(submission.sequence):
            breach = Breach(rules.SEQUENCE_REPEATED, "", f"{submission.sequence} was there before")
            self._findings.add(breach, submission.span)
            return
        instance.in_order.add(submission)
        self._look_at(instance)

    def close(self) -> None:
        """Tell what is told at the end of a run."""
        while self._instances:
            self._let_go()

    def _came_before(self, instance_id: str, fields: GraphSpan, submission: Submission) -> bool:
        identity = (instance_id, submission.sequence, fields.start_ns)
        known = self._spans.first((fields.trace_id, fields.span_id), identity)
        if known is identity:
            return False
        if known == identity:
            self._findings.add(Breach(rules.SENT_TWICE, "", "the same span came before"), submission.span)
            return True
        value = f"{fields.span_id.hex()} is {known[0]} #{known[1]} too"
        self._findings.add(Breach(rules.SPAN_ID_REPEATED, "", value), submission.span)
        return False

    def _check_cell(self, instance_id: str, execution: GraphExecution, span: str) -> None:
        if not execution.cell_id:
            return
        labels = (execution.cell_arm, execution.cell_position, execution.cell_concurrency)
        known = self._cells.first((instance_id, execution.cell_id), labels)
        if known != labels:
            value = f"arm, position, concurrency: {labels}, before {known}"
            self._findings.add(Breach(rules.CELL_INCONSISTENT, "", value), span)

    def _instance(self, instance_id: str) -> _Instance:
        if instance_id not in self._instances:
            self.seen += 1
            self._instances[instance_id] = _Instance(InOrder(), History(), Units(), Tokens())
            if len(self._instances) > self.INSTANCES_MAX:
                self._let_go()
        self._instances.move_to_end(instance_id)
        return self._instances[instance_id]

    def _look_at(self, instance: _Instance, *, all_of_them: bool = False) -> None:
        for submission, missing, gap in instance.in_order.ready(all_of_them=all_of_them):
            if gap is not None:
                self._findings.add(gap, submission.span, missing)
            if gap is not None or submission.execution is None:
                instance.history.forget()
            if submission.execution is not None:
                for breach in instance.history.take(submission.execution, submission.span):
                    self._findings.add(breach, submission.span)

    def _let_go(self) -> None:
        instance_id, instance = self._instances.popitem(last=False)
        self._look_at(instance, all_of_them=True)
        for breach, span, count in _told_at_the_end(instance):
            self._findings.add(breach, span or instance_id, count)


def _told_at_the_end(instance: _Instance) -> Iterator[tuple[Breach, str, int]]:
    yield from instance.units.breaches()
    yield from instance.tokens.breaches()
    yield from instance.history.at_the_end()

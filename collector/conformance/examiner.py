"""Holds requests against the rules, from any thread."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from collector.acceptance import MalformedRequestError, Outcome
from collector.conformance import rules
from collector.conformance.findings import Breach, Finding, Findings, shown
from collector.conformance.in_order import Submission
from collector.conformance.instances import Instances
from collector.conformance.one_execution import breaches_of_execution
from collector.conformance.one_span import breaches_of_resource, breaches_of_span, is_meant_as_execution
from collector.conformance.spans import ReceivedSpan, spans_in
from engine_hooks.contract import names
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.span import GraphSpan, execution_of, is_graph_execution, span_name
from engine_hooks.contract.validation import clock_trouble, span_refusal


class Report(NamedTuple):
    """What was received, and what of it breaks the rules."""

    requests: int
    executions: int
    """Spans that are graph executions, refused ones among them."""
    refused: int
    """Executions that the collector would not store."""
    other_spans: int
    instances: int
    findings: tuple[Finding, ...]


class Examiner:
    """Takes requests one after another; memory stays bounded however many come."""

    def __init__(self, *, live: bool, clock_ns: Callable[[], int] = time.time_ns) -> None:
        """Sets up.

        Args:
            live: requests come from running engines, so that old ones are odd.
            clock_ns: Unix time, in ns.
        """
        self._live = live
        self._clock_ns = clock_ns
        self._findings = Findings()
        self._instances = Instances(self._findings)
        self._turn = threading.Lock()
        self._requests = self._refused = self._other_spans = 0
        self.executions = 0
        """How many were taken so far."""

    def take(self, request: bytes) -> Outcome:
        """Look at one request, and say what a collector would do with it.

        Raises:
            MalformedRequestError: these bytes are none. That is a finding too.
        """
        with self._turn:
            self._requests += 1
            try:
                return self._examined(request)
            except MalformedRequestError as error:
                self._findings.add(Breach(rules.REQUEST_UNREADABLE, "", str(error)), "")
                raise

    def unreadable(self, why: str, where: str) -> None:
        """A request that could not even be taken."""
        with self._turn:
            self._requests += 1
            self._findings.add(Breach(rules.REQUEST_UNREADABLE, "", why), where)

    def report(self) -> Report:
        """What all of it came to. What comes afterwards begins anew in its order."""
        with self._turn:
            self._instances.close()
            return Report(
                self._requests,
                self.executions,
                self._refused,
                self._other_spans,
                self._instances.seen,
                tuple(self._findings.listed()),
            )

    def _examined(self, request: bytes) -> Outcome:
        received_ns = self._clock_ns()
        told: Counter[str] = Counter()
        resource: Any = None
        stored = other = troubled = 0
        for span in spans_in(request):
            fields = span.fields
            if not is_graph_execution(fields.name):
                other += 1
                if not is_meant_as_execution(fields):
                    continue
            if fields.resource is not resource:
                resource = fields.resource
                self._check_resource(fields)
            execution, refusal = self._examined_span(span, received_ns)
            if not is_graph_execution(fields.name):
                continue
            if refusal is not None:
                told[refusal] += 1
            stored += refusal is None
            troubled += execution is not None and clock_trouble(execution)
        self._other_spans += other
        self._refused += told.total()
        return Outcome(stored=stored, refused=told, other_spans=other, clock_trouble=troubled)

    def _check_resource(self, fields: GraphSpan) -> None:
        for breach in breaches_of_resource(fields.resource):
            self._findings.add(breach, _instance_of(fields))

    def _examined_span(self, span: ReceivedSpan, received_ns: int) -> tuple[GraphExecution | None, str | None]:
        """The execution, unless it is refused, and why it is."""
        fields = span.fields
        self.executions += 1
        refusal, label = span_refusal(fields), _label(fields)
        for breach in breaches_of_span(span, refused=refusal is not None):
            self._findings.add(breach, label)
        execution = None
        if refusal is None:
            graph = fields.attributes[names.GRAPH_NAME]
            execution = execution_of(span_name(graph), fields.start_ns, fields.end_ns, fields.attributes)
            for breach in breaches_of_execution(execution, received_ns, live=self._live):
                self._findings.add(breach, label)
        sequence = _sequence_of(fields)
        if sequence is not None:
            self._instances.take(_instance_of(fields), fields, Submission(sequence, execution, label))
        return execution, refusal


def _sequence_of(fields: GraphSpan) -> int | None:
    sequence = fields.attributes.get(names.GRAPH_SEQUENCE)
    if not isinstance(sequence, int | float) or isinstance(sequence, bool) or not 0 <= sequence < 1 << 63:
        return None
    return int(sequence) if sequence == int(sequence) else None


def _instance_of(fields: GraphSpan) -> str:
    return shown(fields.resource.get(names.SERVICE_INSTANCE_ID, ""))


def _label(fields: GraphSpan) -> str:
    sequence = shown(fields.attributes.get(names.GRAPH_SEQUENCE, "?"))
    return f"{_instance_of(fields) or 'no instance'} #{sequence} span {fields.span_id.hex() or 'none'}"

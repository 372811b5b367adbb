"""What conformance makes of a request is what the collector makes of it, whatever a sender hands over."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from collector.conformance.examiner import Examiner
from collector.conformance.files import requests_in
from collector.conformance.report import as_json
from collector.conformance.rules import Severity
from collector.decoding.otlp_json import protobuf_from_json
from collector.spool.verdict import verdict_of
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES
from tests.fixtures.conformance_runs import report_of
from tests.fixtures.contract_cases import CASES, OTHER_SPAN_NAMES, SpanCase, request_of
from tests.fixtures.running import ROOT

_READABLE = [case for case in CASES if b"\xff" not in request_of([case])]
_NAMES = st.one_of(
    st.sampled_from([attribute.name for attribute in (*SPAN_ATTRIBUTES, *RESOURCE_ATTRIBUTES)]), st.text(max_size=12)
)
_SCALARS = st.one_of(
    st.just(AnyValue()),
    st.builds(AnyValue, string_value=st.text(max_size=8)),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AnyValue, double_value=st.floats()),
    st.builds(AnyValue, bytes_value=st.binary(max_size=4)),
    st.builds(AnyValue, string_value=st.sampled_from(["speculative", "ordinary", "P128"])),
)
_VALUES = st.one_of(
    _SCALARS,
    st.builds(lambda items: AnyValue(array_value=ArrayValue(values=items)), st.lists(_SCALARS, max_size=3)),
    st.just(AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="a")]))),
)
_ATTRIBUTES = st.lists(st.builds(KeyValue, key=_NAMES, value=_VALUES), max_size=6)
_TIMES = st.one_of(st.integers(0, 2**64 - 1), st.integers(1_764_000_000_000_000_000, 1_764_000_001_000_000_000))


@st.composite
def _requests(draw: st.DrawFn) -> bytes:
    """Good executions with anything on top."""
    message = ExportTraceServiceRequest.FromString(request_of([draw(st.sampled_from(_READABLE)) for _ in range(2)]))
    for resource_spans in message.resource_spans:
        span = resource_spans.scope_spans[0].spans[0]
        _change(draw, span.attributes)
        if draw(st.booleans()):
            _change(draw, resource_spans.resource.attributes)
        if draw(st.booleans()):
            span.start_time_unix_nano, span.end_time_unix_nano = draw(_TIMES), draw(_TIMES)
        if draw(st.booleans()):
            span.trace_id, span.span_id = draw(st.binary(max_size=17)), draw(st.binary(max_size=9))
        span.name = draw(st.sampled_from([span.name, *OTHER_SPAN_NAMES]))
    serialized: bytes = message.SerializeToString()
    return serialized


def _change(draw: st.DrawFn, attributes: Any) -> None:
    for changed in draw(_ATTRIBUTES):
        if draw(st.booleans()):
            attributes.insert(0, changed)
        else:
            attributes.append(changed)


def _agrees(request: bytes) -> None:
    examiner = Examiner(live=True)
    outcome, verdict = examiner.take(request), verdict_of(request)
    assert outcome._replace(refused=dict(outcome.refused)) == verdict
    report = examiner.report()
    errors = {finding.rule.id for finding in report.findings if finding.rule.severity is Severity.ERROR}
    assert bool(outcome.refused) <= bool(errors)
    assert json.loads(as_json(report))["refused"] == report.refused


@pytest.mark.parametrize("case", CASES, ids=[str(number) for number in range(len(CASES))])
def test_each_case_of_the_contract(case: SpanCase) -> None:
    _agrees(request_of([case]))


@settings(deadline=None)
@given(_requests())
def test_anything_at_all(request: bytes) -> None:
    _agrees(request)


def test_the_contracts_own_example_conforms() -> None:
    page = (ROOT / "docs" / "contract.md").read_text()
    (example,) = re.findall(r"```json\n(.+?)```", page, re.DOTALL)
    assert report_of(protobuf_from_json(example.encode())).findings == ()


def test_independent_simulations_break_nothing_but_what_they_lost(cases: Path) -> None:
    every = json.loads((cases / "cells" / "truth.json").read_text())["cells"]
    truth = [*every[:2], *[cell for cell in every[2:] if cell["sequence"]["lost"]][:2]]
    examiner = Examiner(live=False)
    for cell in truth:
        for read in requests_in(cases / "cells" / cell["file"]):
            examiner.take(read.request)
    report = examiner.report()
    lost = sum(len(cell["sequence"]["lost"]) for cell in truth)
    assert lost
    assert {finding.rule.id: finding.times for finding in report.findings} == {"sequence-gap": lost}
    assert report.instances == len(truth)


def test_gzip_in_members_is_one_file(tmp_path: Path) -> None:
    file = tmp_path / "two.gz"
    request = request_of(CASES[-1:])
    prefixed = len(request).to_bytes(4, "big") + request
    file.write_bytes(gzip.compress(prefixed) + gzip.compress(prefixed))
    assert len(list(requests_in(file))) == 2

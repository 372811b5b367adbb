"""`tachograph import` over real gRPC: what is sent, and what is said when it cannot be."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from engine_hooks.adapters.profile_files import imported
from engine_hooks.adapters.profiles.errors import TraceImportError, TraceUnreadableError, WrongShiftError
from engine_hooks.commands.import_traces import import_traces
from engine_hooks.contract.names import GraphKind
from engine_hooks.errors import SendError
from engine_hooks.recorder.client import OtlpClient
from engine_hooks.recorder.connection import Answer, NotTakenError
from engine_hooks.recorder.encoder import BATCH_SPANS_MAX
from engine_hooks.recorder.sending import requests_of
from tests.fixtures.nsight_exports import ExportMaker


class Here(NamedTuple):
    """The one setting of this command."""

    otlp_endpoint: str


class Inbox(TraceServiceServicer):
    """Keeps each request as bytes and answers with `answer`."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.answer = ExportTraceServiceResponse()
        self.settings = Here("")

    def Export(self, request: Any, _: Any) -> ExportTraceServiceResponse:  # noqa: N802
        self.requests.append(request.SerializeToString())
        return self.answer


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    service = Inbox()
    with ThreadPoolExecutor(max_workers=2) as pool:
        server = grpc.server(pool)
        add_TraceServiceServicer_to_server(service, server)
        service.settings = Here(f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
        server.start()
        yield service
        server.stop(grace=None).wait(5)


def trace_of(launches: int) -> str:
    def event(cat: str, name: str, ts: int, correlation: int) -> dict[str, Any]:
        arguments = {"correlation": correlation, "device": 0, "stream": 7}
        return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 5, "args": arguments}

    calls = [event("cuda_runtime", "cudaGraphLaunch", 20 * n + 1, n) for n in range(launches)]
    return json.dumps({"traceEvents": [*calls, *(event("kernel", "gemm", 20 * n + 10, n) for n in range(launches))]})


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(trace_of(3))
    return path


def test_a_second_import_sends_the_same_bytes(inbox: Inbox, trace: Path, tmp_path: Path) -> None:
    trace.write_text(trace_of(BATCH_SPANS_MAX + 1))
    import_traces(inbox.settings, [trace])
    first, inbox.requests = inbox.requests, []
    elsewhere = tmp_path / "elsewhere.json"
    trace.rename(elsewhere)
    import_traces(inbox.settings, [elsewhere])
    assert len(first) == 2
    assert inbox.requests == first
    (instance,) = imported(elsewhere, GraphKind.MIXED).instances
    expected = requests_of(instance.resource, instance.executions)
    assert [request.body for request in expected] == first


def test_a_broken_file_stops_all_of_them_before_anything_is_sent(inbox: Inbox, trace: Path, tmp_path: Path) -> None:
    cut_off = tmp_path / "cut_off.json"
    cut_off.write_text(trace_of(3)[:-20])
    with pytest.raises(TraceUnreadableError, match=r"cut_off\.json is cut off after 5 whole events"):
        import_traces(inbox.settings, [trace, cut_off])
    assert not inbox.requests


def export_of(launches: int, path: Path) -> Path:
    with ExportMaker(path) as maker:
        maker.call(1, 1, 2)
        for number in range(2, launches + 2):
            maker.launch(number, 20 * number, 20 * number + 5)
            maker.graph(number, 20 * number + 6, 20 * number + 15)
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("truncated kineto", "is cut off after 2 whole events"),
        ("truncated nsight", "is cut off: it has 20,000 of "),
        ("empty", "is empty"),
        ("kineto without a launch", "holds no graph launch .* among its 0 events"),
        ("nsight without a launch", "holds no graph launch .* among its 1 CUDA calls"),
        ("JSON", "has no traceEvents: it is not a PyTorch profiler"),
        ("text", "is no profile: it is neither JSON of PyTorch's profiler"),
    ],
)
def test_what_cannot_be_imported_is_said_in_one_line(inbox: Inbox, tmp_path: Path, content: str, words: str) -> None:
    """Beside a good file, of which nothing is sent either."""
    bad = tmp_path / "bad"
    match content:
        case "truncated nsight" | "nsight without a launch":
            export_of(4 if "truncated" in content else 0, bad)
            bad.write_bytes(bad.read_bytes()[: 20_000 if "truncated" in content else None])
        case _:
            texts = {"truncated kineto": trace_of(2)[:-150], "kineto without a launch": trace_of(0)}
            bad.write_text({"empty": "", "JSON": "{}", "text": "not a profile", **texts}[content])
    good = export_of(3, tmp_path / "good")
    with pytest.raises(TraceImportError, match=words) as error:
        import_traces(inbox.settings, [good, bad])
    assert str(error.value).startswith(f"{bad} ")
    assert "\n" not in str(error.value)
    assert not inbox.requests
    import_traces(inbox.settings, [good])
    assert len(inbox.requests) == 1


def test_a_dry_run_sends_nothing(inbox: Inbox, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_traces(inbox.settings, [trace], dry_run=True)
    assert not inbox.requests
    assert "3 executions; dry run, nothing was sent" in capsys.readouterr().out


@pytest.mark.parametrize("date", ["1900-01-01", "1970-01-01", "9999-01-01", "2262-04-11"])
def test_a_time_that_no_span_can_have_is_refused(inbox: Inbox, trace: Path, date: str) -> None:
    with pytest.raises(WrongShiftError, match=f"^--shift-to {date}: give a time of the years 1971 to 2261$"):
        import_traces(inbox.settings, [trace], shift_to=date)
    assert not inbox.requests


@pytest.mark.parametrize("date", ["1971-01-01", "2261-12-31T23:59:59Z"])
def test_the_first_and_last_times_are_taken(inbox: Inbox, trace: Path, date: str) -> None:
    import_traces(inbox.settings, [trace], shift_to=date)
    assert len(inbox.requests) == 1


def test_launches_that_the_contract_refuses_one_and_all_are_nothing_to_import(inbox: Inbox, trace: Path) -> None:
    too_long = json.loads(trace_of(2))
    for event in too_long["traceEvents"]:
        event["dur"] = 2 * 3600 * 1e6 if event["cat"] == "kernel" else event["dur"]
    trace.write_text(json.dumps(too_long))
    with pytest.raises(TraceImportError, match=r"holds 2 graph launches, none of them usable: 2 .*one hour") as error:
        import_traces(inbox.settings, [trace])
    assert "\n" not in str(error.value)
    assert not inbox.requests


def test_a_file_named_twice_is_read_once(
    inbox: Inbox, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.json").symlink_to(trace)
    other = tmp_path / "other.json"
    other.write_text(trace_of(2))
    import_traces(inbox.settings, [trace, other, tmp_path / "link.json", tmp_path / "." / trace.name], as_json=True)
    assert [summary["file"] for summary in json.loads(capsys.readouterr().out)] == [str(trace), str(other)]
    assert len(inbox.requests) == 2


def test_json_summary(inbox: Inbox, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_traces(inbox.settings, [trace], as_json=True)
    (summary,) = json.loads(capsys.readouterr().out)
    (instance,) = summary["instances"]
    assert (instance["executions"], instance["gpu_time_ns"]) == (3, 15_000)
    assert (instance["device_busy_ns"], instance["device_idle_ns"]) == (15_000, 30_000)
    assert (instance["queue_depth_min"], instance["queue_depth_max"]) == (0, 0)
    assert (instance["started_at_first"], instance["ended_at_last"]) == (1_000, 55_000)
    assert len(inbox.requests) == 1


def test_what_the_collector_refuses_is_named(inbox: Inbox, trace: Path) -> None:
    inbox.answer.partial_success.rejected_spans = 2
    inbox.answer.partial_success.error_message = "graph.kind is unknown"
    with pytest.raises(SendError, match=r"refused executions: 2 \(graph.kind is unknown\)"):
        import_traces(inbox.settings, [trace])


@pytest.fixture
def away_after_two(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bodies of the requests that a collector took before it went away."""
    taken: list[bytes] = []

    def for_two_requests(_: OtlpClient, body: bytes) -> Answer:
        if len(taken) == 2:
            raise NotTakenError("UNAVAILABLE", "Connection refused", retryable=True, is_certain=True)
        taken.append(body)
        return Answer(0, "")

    monkeypatch.setattr(OtlpClient, "send", for_two_requests)
    return taken


def test_what_was_taken_before_the_collector_went_away_is_said(
    away_after_two: list[bytes], trace: Path, tmp_path: Path
) -> None:
    """Of all files together."""
    large = tmp_path / "large.json"
    large.write_text(trace_of(2 * BATCH_SPANS_MAX))
    with pytest.raises(SendError) as told:
        import_traces(Here("http://127.0.0.1:1"), [trace, large])
    assert str(told.value) == (
        f"took {BATCH_SPANS_MAX + 3:,} of {2 * BATCH_SPANS_MAX + 3:,} executions, then: the collector at "
        "http://127.0.0.1:1 did not take the executions (UNAVAILABLE: Connection refused): start it or set "
        "TACHOGRAPH_OTLP_ENDPOINT, then send again, as before: those are stored once"
    )
    first = list(away_after_two)
    away_after_two.clear()
    with pytest.raises(SendError):
        import_traces(Here("http://127.0.0.1:1"), [trace, large])
    assert away_after_two == first


def test_what_was_moved_to_now_is_sent_again_by_the_time_that_is_named(
    away_after_two: list[bytes], trace: Path
) -> None:
    trace.write_text(trace_of(3 * BATCH_SPANS_MAX))
    with pytest.raises(SendError, match=r"another now is another engine instance$") as told:
        import_traces(Here("http://127.0.0.1:1"), [trace], shift_to="now")
    said = re.search(
        r"then send again by --shift-to (\S+) and all else as before: those are stored once;", str(told.value)
    )
    assert said
    first = list(away_after_two)
    away_after_two.clear()
    with pytest.raises(SendError):
        import_traces(Here("http://127.0.0.1:1"), [trace], shift_to=said[1])
    assert away_after_two == first


def test_no_collector(trace: Path) -> None:
    with pytest.raises(SendError, match=r"the collector at http://127.0.0.1:1 did not take .*UNAVAILABLE") as error:
        import_traces(Here("http://127.0.0.1:1"), [trace])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4317", "ftp://host:1", ""])
def test_an_endpoint_that_is_none(trace: Path, endpoint: str) -> None:
    with pytest.raises(SendError, match="is no OTLP endpoint: set TACHOGRAPH_OTLP_ENDPOINT"):
        import_traces(Here(endpoint), [trace])

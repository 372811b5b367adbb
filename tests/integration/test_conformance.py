"""`tachograph conformance` on what real senders send and write, and on files that are none."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.commands.conformance import conformance
from collector.conformance.errors import ConformanceError
from collector.conformance.examiner import Examiner, Report
from collector.conformance.files import requests_in
from collector.conformance.listening import Doors, listening
from collector.ports import PortTakenError
from engine_hooks.commands.simulate.cell import simulate_cell, write_to
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.simulator.cell import POLICIES, run_cell
from engine_hooks.simulator.recording import EPOCH_UNIX_NS, simulated_resource
from engine_hooks.simulator.scenarios import SCENARIOS
from tests.fixtures.conformance_runs import good_run, one
from tests.fixtures.contract_cases import request_of
from tests.fixtures.running import ROOT, free_addresses, tachograph

SCENARIO = next(iter(SCENARIOS.values()))
GOOD = request_of(good_run())
BAD = request_of(one({"graph.kind": "bogus"})(good_run()))


def _json(request: bytes, **options: object) -> bytes:
    """As OTLP has it: ids in hex."""
    text = MessageToJson(ExportTraceServiceRequest.FromString(request), **options)

    def hexed(found: "re.Match[str]") -> str:
        import base64

        return f'{found[1]}"{base64.b64decode(found[2]).hex()}"'

    text = re.sub(r'("(?:traceId|spanId)": ?)"([^"]+)"', hexed, text)
    return text.replace('"SPAN_KIND_INTERNAL"', "1").encode()


def _line(request: bytes) -> bytes:
    return _json(request, indent=None) + b"\n"


def _varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80, number >> 7]) if number < 1 << 14 else bytes(
        [number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14]
    )  # fmt: skip


def _read(file: Path) -> Report:
    examiner = Examiner(live=False)
    for one_of_them in requests_in(file):
        examiner.take(one_of_them.request)
    return examiner.report()


FORMS = {
    "one JSON document": _json(GOOD),
    "one JSON document in a line": _line(GOOD).rstrip(),
    "JSON lines": b'{"resourceMetrics":[]}\n' + _line(GOOD) + b"\n" + _line(GOOD),
    "one request in protobuf": GOOD,
    "requests after varints": _varint(len(GOOD)) + GOOD + _varint(len(GOOD)) + GOOD,
    "requests after four bytes": len(GOOD).to_bytes(4, "big") + GOOD,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_file_is_read(form: str, tmp_path: Path) -> None:
    for name, content in (("plain", FORMS[form]), ("packed.gz", gzip.compress(FORMS[form]))):
        (tmp_path / name).write_bytes(content)
        report = _read(tmp_path / name)
        assert report.executions in (12, 24)
        assert {finding.rule.id for finding in report.findings} <= {"sent-twice"}


HOSTILE = {
    "empty": b"",
    "an empty gzip": gzip.compress(b""),
    "text": b"hello, world\n",
    "a gzip cut off": gzip.compress(os.urandom(4096))[:2000],
    "gzip in name only": b"\x1f\x8bnothing",
    "a JSON array": b"[1, 2, 3]",
    "broken JSON": b'{"resourceSpans": [',
    "JSON of a wrong kind": b'{"resourceSpans": 7}',
    "protobuf cut off": GOOD[: len(GOOD) // 2 - 3],
    "length-prefixed, cut off": _varint(len(GOOD)) + GOOD[: len(GOOD) // 2],
    "a length of an exabyte": b"\xff" * 8 + b"\x01\x0a" + GOOD,
    "four bytes that promise too much": b"\x00\xff\xff\xff" + GOOD,
    "endless varint": b"\xff" * 600,
    "deeply nested": b"[" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_give_one_line(name: str, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_bytes(HOSTILE[name])
    with pytest.raises(ConformanceError) as told:
        _read(file)
    assert "\n" not in str(told.value)
    assert "given" in str(told.value)


_WHOLE = FORMS["one JSON document"]
CUT_OFF = {
    "a document of many lines": (_WHOLE[:2000], f" line {_WHOLE[:2000].count(10) + 1} column "),
    "a document in a line": (_line(GOOD)[:700], " line 1 column 701: the JSON is cut off"),
    "the third line": (_line(GOOD) * 2 + _line(GOOD)[:700], " line 3 column 701: the JSON is cut off"),
}


@pytest.mark.parametrize("name", CUT_OFF)
def test_json_cut_off_is_told_with_its_place(name: str, tmp_path: Path) -> None:
    content, place = CUT_OFF[name]
    file = tmp_path / "given"
    for packed in (content, gzip.compress(content)):
        file.write_bytes(packed)
        with pytest.raises(ConformanceError, match=r"the JSON is cut off$") as told:
            _read(file)
        assert str(told.value).startswith(f"{file}{place}")


@pytest.mark.parametrize("beginning", [b'{"schemaVersion": 1, "traceEvents": [', b"SQLite format 3\x00"])
def test_profiles_are_pointed_to_where_they_are_read(beginning: bytes, tmp_path: Path) -> None:
    file = tmp_path / "trace.gz"
    file.write_bytes(gzip.compress(beginning + bytes(100_000)))
    with pytest.raises(
        ConformanceError, match=r"trace\.gz is a profiler's trace, no OTLP: `tachograph import` reads it"
    ):
        _read(file)


@pytest.mark.parametrize("content", ["{}", '{"resourceLogs":[]}', '{"resourceSpans":[]}'])
def test_nothing_to_judge_does_not_conform(content: str, tmp_path: Path) -> None:
    file = tmp_path / "given.json"
    file.write_text(content)
    told = tachograph(free_addresses(tmp_path), "conformance", str(file))
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == "tachograph: no graph execution in what was read: nothing to judge\n"


def test_other_spans_alone_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    other = [
        case._replace(span={**case.span, "name": "GET /"}, attributes={"graph.name": None}) for case in good_run(3)
    ]
    file.write_bytes(_line(request_of(other)))
    with pytest.raises(ConformanceError, match=r"no graph execution in what was read \(3 spans of other names\)"):
        conformance([file])


@pytest.mark.parametrize("policy", POLICIES)
def test_simulated_engines_conform(policy: str, tmp_path: Path) -> None:
    simulated = simulate_cell(SCENARIO, policy, 0, EPOCH_UNIX_NS)
    file = tmp_path / "cell.otlp.gz"
    write_to(file, simulated)
    report = _read(file)
    assert report.findings == ()
    assert report.executions == len(simulated.executions)


def _recorded(doors: Doors, protocol: str) -> None:
    """A real recorder and a stock exporter."""
    exporter = (
        GrpcExporter(endpoint=doors.grpc_url, insecure=True)
        if protocol == "grpc"
        else HttpExporter(endpoint=f"{doors.http_url}/v1/traces")
    )
    executions: list[GraphExecution] = []
    run_cell(SCENARIO, "drained_share", 0, on_execution=executions.append)
    resource = simulated_resource("engine-1", service_name="simulated", host_name="here")
    with Recorder(resource, exporter=exporter, interval_s=0.05) as recorder:
        for execution in executions[:2000]:
            recorder.record(execution)
        assert recorder.flush(60)
        assert not any(recorder.losses.values())


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_our_recorder_conforms(protocol: str) -> None:
    examiner = Examiner(live=False)
    with listening(examiner, 0, 0, lambda: None) as doors:
        _recorded(doors, protocol)
    report = examiner.report()
    assert report.findings == ()
    assert report.executions > 500


def test_what_a_door_turns_away_is_told() -> None:
    import httpx

    examiner = Examiner(live=True)
    with listening(examiner, 0, 0, lambda: None) as doors:
        url = f"{doors.http_url}/v1/traces"
        json_type = {"Content-Type": "application/json"}
        assert httpx.post(url, content=_line(BAD), headers=json_type).json()["partialSuccess"]["rejectedSpans"] == "1"
        assert httpx.post(url, content=b"{", headers=json_type).status_code == 400
        assert httpx.post(url, content=b"\xff", headers={"Content-Type": "application/x-protobuf"}).status_code == 400
        assert httpx.post(url, content=b"x", headers={"Content-Type": "text/plain"}).status_code == 415
    found = {finding.rule.id: finding.times for finding in examiner.report().findings}
    assert found["request-unreadable"] == 3
    assert found["enum-unknown"] == 1


def test_a_taken_port_is_told() -> None:
    with listening(Examiner(live=True), 0, 0, lambda: None) as doors:
        port = int(doors.grpc_url.rpartition(":")[2])
        with pytest.raises(PortTakenError, match="--grpc-port"), listening(Examiner(live=True), port, 0, lambda: None):
            pass


def test_command_on_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, half = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "half.json"
    good.write_bytes(_line(GOOD))
    bad.write_bytes(_line(BAD))
    half.write_bytes(_line(GOOD) + _line(GOOD)[:100])
    conformance([good])
    assert capsys.readouterr().out == "12 graph executions of 1 engine run in 1 request: conforms\n"
    breaks = tachograph(free_addresses(tmp_path), "conformance", "--json", str(bad))
    assert breaks.returncode == 1
    (finding,) = json.loads(breaks.stdout)["findings"]
    assert (finding["rule"], finding["subject"], finding["count"]) == ("enum-unknown", "graph.kind", 1)
    assert finding["example"]["span"].startswith("host1:4711 #3 span ")
    with pytest.raises(typer.Exit):
        conformance([half])
    assert "line 2" in capsys.readouterr().out


def test_command_says_in_one_line_what_cannot_be_read(tmp_path: Path) -> None:
    done = tachograph(free_addresses(tmp_path), "conformance", str(tmp_path / "none"))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "No such file" in done.stderr


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("kind", ["gone", "directory", "empty", "garbage"])
def test_a_file_that_cannot_be_read_is_no_breach_wherever_it_stands(
    kind: str, is_first: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, other = tmp_path / "good.json", tmp_path / "other"
    good.write_bytes(_line(GOOD))
    if kind == "directory":
        other.mkdir()
    elif kind != "gone":
        other.write_bytes(b"" if kind == "empty" else b"garbage")
    with pytest.raises(ConformanceError, match=str(other)) as refused:
        conformance([other, good] if is_first else [good, other])
    assert refused.value.exit_code == 2
    assert capsys.readouterr().out == ""


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(b'{"resourceMetrics":[]}\n')
    zeros = tmp_path / "zeros"
    zeros.write_bytes(bytes(1000))
    for files, options, said in (
        ([tmp_path], {}, "Is a directory"),
        ([zeros], {}, "no graph execution"),
        ([other], {}, "no graph execution"),
        ([], {}, "name files, or give --listen"),
        ([other], {"listen": True}, "either"),
        ([other], {"seconds": 3.0}, "go with --listen"),
    ):
        with pytest.raises(ConformanceError, match=said) as told:
            conformance(files, **options)  # type: ignore[arg-type]
        assert told.value.exit_code == 2


def test_warnings_count_where_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "warned.json"
    file.write_bytes(_line(request_of(one({"batch.colour": 1})(good_run()))))
    conformance([file])
    assert "attribute-unknown" in capsys.readouterr().out
    with pytest.raises(typer.Exit) as ended:
        conformance([file], strict=True)
    assert ended.value.exit_code == 1


@contextmanager
def _started(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A listening command and its HTTP door."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tachograph", "conformance", "--listen", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        yield process, process.stderr.readline().rpartition("HTTP ")[2].strip()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _send(url: str) -> None:
    import httpx

    httpx.post(url, content=BAD, headers={"Content-Type": "application/x-protobuf"}).raise_for_status()


@pytest.mark.parametrize("end", ["Ctrl-C", "executions"])
def test_command_listens(end: str) -> None:
    with _started(*([] if end == "Ctrl-C" else ["--executions", "12"])) as (process, url):
        _send(url)
        if end == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "enum-unknown" in told
    assert "12 graph executions of 1 engine run in " in told


def test_command_hears_nothing() -> None:
    with _started("--seconds", "0.3") as (process, _):
        told, said = process.communicate(timeout=60)
    assert (process.returncode, told) == (2, "")
    assert said.splitlines()[-1] == "tachograph: no graph execution was received: nothing to judge"

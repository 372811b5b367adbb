"""Fuzzes what a sender can hand over: protobuf and JSON bodies, from their bytes to Python's verdict.

`python -m tests.fuzz.fuzz_requests [--seconds 300]`. Atheris (libFuzzer) mutates the contract's cases, led by what the
decoders' code has covered. A body is read or refused as malformed, nothing else; the same request in JSON comes to the
same verdict; memory stays under a limit; no body takes long. What failed is kept, and named at the end.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["collector.decoding", "collector.spool", "engine_hooks.contract"]):
    from collector.decoding.otlp_json import protobuf_from_json
    from collector.decoding.wire import marks, request_id_of, spans_of
    from collector.spool.verdict import verdict_of

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.acceptance import MalformedRequestError, Outcome
from tests.fixtures.contract_cases import CASES, OTHER_SPAN_NAMES, SpanCase, request_of
from tests.fixtures.otlp_json import json_of

MEMORY_LIMIT_MB = 700
BODY_LIMIT_S = 10
BODY_BYTES_MAX = 16_384
_CHILD = "TACHOGRAPH_FUZZ_CHILD"


class VerdictsDifferError(AssertionError):
    """The same request in two encodings comes to two verdicts."""


def read(body: bytes) -> None:
    """One body, of the kind that its first byte says."""
    kind, content = body[:1], body[1:]
    try:
        request = protobuf_from_json(content) if kind == b"j" else content
        spans = spans_of(request)
    except MalformedRequestError:
        return
    verdict = verdict_of(request)
    if verdict.stored + verdict.other_spans + sum(verdict.refused.values()) != spans:
        raise VerdictsDifferError(f"{spans} spans, and a verdict on others: {verdict}")
    marks(len(request), request_id_of(request), 1)
    if kind != b"j":
        _compare(verdict, request)


def _compare(verdict: Outcome, request: bytes) -> None:
    try:
        message = ExportTraceServiceRequest.FromString(request)
    except DecodeError:  # Broken text, which JSON cannot carry.
        return
    as_json = verdict_of(protobuf_from_json(json_of(message)))
    if as_json != verdict:
        raise VerdictsDifferError(f"protobuf: {verdict}; JSON: {as_json}")


def seeds() -> list[bytes]:
    """The contract's cases, one body each in both encodings, and some that are broken."""
    others = tuple(SpanCase(name, span={"name": name}) for name in OTHER_SPAN_NAMES)
    requests = [request_of([case]) for case in (*CASES, *others)]
    readable = [
        raw for raw, case in zip(requests, (*CASES, *others), strict=True) if "UTF-8" not in (case.reason or "")
    ]
    in_json = [json_of(ExportTraceServiceRequest.FromString(raw)) for raw in readable]
    broken = [b"p", b"j", b"j{}", b"j" + b"[" * 2000, b"p\x0a\xff\xff\xff\xff\x0f", b'j{"resourceSpans": 1}']
    return [*(b"p" + raw for raw in requests), *(b"j" + body for body in in_json), *broken]


def _fuzz(seconds: int, corpus: Path, found: Path) -> None:
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={seconds}",
            f"-rss_limit_mb={MEMORY_LIMIT_MB}",
            f"-timeout={BODY_LIMIT_S}",
            f"-max_len={BODY_BYTES_MAX}",
            f"-artifact_prefix={found}/",
            "-print_final_stats=1",
            "-verbosity=1",
            str(corpus),
        ],
        read,
    )
    atheris.Fuzz()


def main() -> int:
    """0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"), help="where bodies that fail are kept")
    options = parser.parse_args()
    options.found.mkdir(parents=True, exist_ok=True)
    if corpus := os.environ.get(_CHILD):
        _fuzz(options.seconds, Path(corpus), options.found)
        return 0  # Not reached: libFuzzer ends the process.
    with tempfile.TemporaryDirectory() as directory:
        for number, seed in enumerate(seeds()):
            (Path(directory) / str(number)).write_bytes(seed)
        # libFuzzer ends its process in its own way.
        command = [sys.executable, "-m", "tests.fuzz.fuzz_requests", *sys.argv[1:]]
        done = subprocess.run(
            command, env={**os.environ, _CHILD: directory}, capture_output=True, text=True, check=False
        )
    told = done.stderr.splitlines()
    stats = [line for line in told if line.startswith("stat::")]
    print("\n".join(stats if done.returncode == 0 and stats else told[-60:]))  # noqa: T201
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

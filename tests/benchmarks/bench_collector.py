"""Ingest through the doors against walking the same messages in Python: `python -m tests.benchmarks.bench_collector`.

Prints executions a second through gRPC, HTTP protobuf and OTLP/JSON (32 senders, requests of 500,
acknowledged, so stored), the CPU time of one of them, sender included, and the time to acknowledge one execution, on an otherwise idle collector.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import grpc
import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.service import Collector, CollectorSettings
from tests.fixtures.contract_cases import GOOD_ATTRIBUTES, SpanCase, request_of
from tests.fixtures.doors import EXPORT, JSON, PROTOBUF
from tests.fixtures.otlp_json import json_of

SPANS, REQUESTS, SENDERS = 500, 160, 32
Send = Callable[[bytes], object]


def requests_from(first: int, spans: int = SPANS) -> Iterator[bytes]:
    """Requests of one resource, no two alike."""
    template = ExportTraceServiceRequest.FromString(request_of([SpanCase("good")]))
    sent = template.resource_spans[0].scope_spans[0].spans
    span = sent.pop()
    place = list(GOOD_ATTRIBUTES).index("graph.sequence")
    while True:
        del sent[:]
        for sequence in range(first, first + spans):
            span.attributes[place].value.int_value = sequence
            span.span_id = sequence.to_bytes(8, "big")
            sent.append(span)
        first += spans
        yield template.SerializeToString()


def walk(requests: list[bytes]) -> None:
    """What a collector in Python has to do at the least: every attribute of every span into a row."""
    for raw in requests:
        for resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
            for span in resource.scope_spans[0].spans:
                row = {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}
                row |= {"started_at": span.start_time_unix_nano, "ended_at": span.end_time_unix_nano}


def rate(work: Callable[[], object], spans: int) -> str:
    began, used = time.perf_counter(), time.process_time()
    work()
    seconds, used = time.perf_counter() - began, time.process_time() - used
    return f"{spans / seconds:,.0f} executions/s, {used / spans * 1e6:.0f} us of CPU each"


def through(send: Send, requests: list[bytes]) -> Callable[[], object]:
    def work() -> object:
        with ThreadPoolExecutor(SENDERS) as senders:
            return list(senders.map(send, requests))

    return work


def latency_ms(send: Send, requests: list[bytes]) -> str:
    taken = []
    for request in requests:
        began = time.perf_counter()
        send(request)
        taken.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.1)
    return f"median {statistics.median(taken):.0f} ms, worst {max(taken):.0f} ms"


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        Collector(CollectorSettings(Path(directory))) as collector,
        grpc.insecure_channel(f"127.0.0.1:{collector.otlp_grpc_port}") as channel,
        httpx.Client(timeout=60) as http,
    ):
        url = collector.urls()["otlp_http"]
        doors: dict[str, Send] = {
            "gRPC": channel.unary_unary(EXPORT),
            "HTTP protobuf": lambda raw: http.post(url, content=raw, headers=PROTOBUF).raise_for_status(),
            "HTTP JSON": lambda raw: http.post(url, content=raw, headers=JSON).raise_for_status(),
        }
        fresh = requests_from(1)
        doors["gRPC"](next(fresh))  # the first insert warms the engine
        for name, send in doors.items():
            requests = list(islice(fresh, REQUESTS))
            singles = list(islice(requests_from(10**9 + len(name) * 10**6, 1), 30))
            if name == "HTTP JSON":
                requests, singles = (
                    [json_of(ExportTraceServiceRequest.FromString(raw)) for raw in some] for some in (requests, singles)
                )
            print(f"{name}: {rate(through(send, requests), SPANS * REQUESTS)}")  # noqa: T201
            print(f"{name}: one execution acknowledged, {latency_ms(send, singles)}")  # noqa: T201
        requests = list(islice(fresh, 20))
        print(f"walk in Python: {rate(lambda: walk(requests), SPANS * 20)}")  # noqa: T201


if __name__ == "__main__":
    main()

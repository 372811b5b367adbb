"""Executions to send, and senders at full speed that take note of each acknowledgement."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import grpc
import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from engine_hooks.contract import names
from engine_hooks.contract.span import span_id_of
from tests.fixtures.contract_cases import GOOD_ATTRIBUTES, GOOD_RESOURCE, SpanCase, request_of
from tests.fixtures.doors import EXPORT, JSON, PROTOBUF
from tests.fixtures.running import Addresses

ROUND_NS = 30_000_000
Send = Callable[[bytes], object]
_PATIENCE_S = 120.0


def requests_of(instance: str, spans: int, seed: int = 0, first: int = 0) -> Iterator[bytes]:
    """Requests of one engine instance without end, `spans` executions each, numbered from `first` on.

    All attributes of the contract; numbers, times, ids and counts are of each execution. One message is filled anew
    for each request, which is quicker than to build one.
    """
    numbers = random.Random(seed)
    resource = GOOD_RESOURCE | {names.SERVICE_INSTANCE_ID: instance, names.HOST_NAME: instance.partition(":")[0]}
    message = ExportTraceServiceRequest.FromString(request_of([SpanCase("any", resource=resource)]))
    sent = message.resource_spans[0].scope_spans[0].spans
    for _ in range(spans - 1):
        sent.append(sent[0])
    place = {name: number for number, name in enumerate(GOOD_ATTRIBUTES)}
    started_at, sequence = time.time_ns(), itertools.count(first)
    while True:
        for span in sent:
            number = next(sequence)
            span.span_id = span_id_of(instance, number)
            span.start_time_unix_nano = started_at + number * ROUND_NS
            span.end_time_unix_nano = span.start_time_unix_nano + ROUND_NS
            for name, value in _own_values(number, numbers):
                span.attributes[place[name]].value.int_value = value
        yield message.SerializeToString()


def _own_values(sequence: int, numbers: random.Random) -> Iterator[tuple[str, int]]:
    gpu_time_ns, accepted = numbers.randrange(27_000_000, 29_000_000), numbers.randrange(112)
    yield names.GRAPH_SEQUENCE, sequence
    yield names.GRAPH_GPU_TIME_NS, gpu_time_ns
    yield names.GRAPH_WALL_TIME_NS, gpu_time_ns + numbers.randrange(1_000_000)
    yield names.BATCH_TOKENS_ACCEPTED, accepted
    yield names.BATCH_TOKENS_EMITTED, accepted + 16


@contextmanager
def grpc_door(to: Addresses) -> Iterator[Send]:
    """Sends over one connection of its own, as one engine does."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{to.otlp_grpc_port}", options) as channel:
        export = channel.unary_unary(EXPORT)
        yield lambda request: export(request, timeout=_PATIENCE_S)


@contextmanager
def http_door(to: Addresses, headers: dict[str, str] = PROTOBUF) -> Iterator[Send]:
    """The same over HTTP."""
    with httpx.Client(timeout=_PATIENCE_S, headers=headers) as client:
        yield lambda request: client.post(to.otlp_http, content=request).raise_for_status()


@contextmanager
def json_door(to: Addresses) -> Iterator[Send]:
    """The same in OTLP/JSON."""
    with http_door(to, JSON) as send:
        yield send


DOORS: dict[str, Callable[[Addresses], AbstractContextManager[Send]]] = {
    "gRPC": grpc_door,
    "HTTP protobuf": http_door,
    "HTTP JSON": json_door,
}


@dataclass
class Sent:
    """What senders saw."""

    acknowledged: int = 0
    turned_away: int = 0
    latencies_s: list[float] = field(default_factory=list)


def send_all(door: Callable[[Addresses], AbstractContextManager[Send]], to: Addresses, queues: list[Iterable[bytes]]) -> Sent:  # fmt: skip
    """One sender for each queue, each with one request under way; returns when all are acknowledged.

    What is turned away for want of room is sent again, as an exporter does.
    """
    sent, noting = Sent(), threading.Lock()
    failures: list[BaseException] = []

    def run(queue: Iterable[bytes]) -> None:
        try:
            with door(to) as send:
                for request in queue:
                    _send(send, request, sent, noting)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run, args=(queue,)) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sent


def _send(send: Send, request: bytes, sent: Sent, noting: threading.Lock) -> None:
    while True:
        began = time.perf_counter()
        try:
            send(request)
        except (grpc.RpcError, httpx.HTTPStatusError) as error:
            if not _wants_it_again(error):
                raise
            with noting:
                sent.turned_away += 1
            time.sleep(0.1)
            continue
        with noting:
            sent.acknowledged += 1
            sent.latencies_s.append(time.perf_counter() - began)
        return


def _wants_it_again(error: grpc.RpcError | httpx.HTTPStatusError) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in (429, 503)
    return error.code() in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)

"""Senders that give up, or still wait when the doors shut: told what to do, and nobody else's trouble."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.acceptance import Outcome, StoreUnavailableError
from collector.control.giving import CONTROL_PATH
from collector.control.key import make_key, read_key
from collector.control.names import TELL_RETENTION
from collector.control.orders import Holdings, Orders
from collector.http_server import HttpServer
from collector.ports import bind, port_of
from collector.receivers.control import ControlReceiver
from collector.receivers.otlp_http import HttpReceiver
from collector.service import Collector, CollectorSettings
from collector.spool.database import spool_file
from collector.spool.spool import Spool
from collector.store.opening import StoreOpening
from collector.telemetry.metrics import CollectorMetrics
from collector.writer import Writer, WriterLimits
from tests.fixtures.doors import EXPORT, PROTOBUF, serving
from tests.fixtures.fake_store import QUICK, ROOMY, FakeStore, request, writing
from tests.fixtures.senders import eventually

NOBODY = "http://127.0.0.1:9/tachograph"
"""A ClickHouse that is away."""


def failures(metrics: CollectorMetrics) -> list[str]:
    """Errors that attempts to store met with."""
    return [sample.labels["error"] for family in metrics.insert_failures.collect() for sample in family.samples]


def test_an_answer_that_nobody_waits_for_is_no_trouble_of_the_store(tmp_path: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    with writing(store, tmp_path) as written:
        given_up = written.writer.accept(request(1), "http")
        assert store.inserting.wait(60)
        given_up.cancel()
        store.gate.set()
        assert written.writer.accept(request(2), "http").result(30) == Outcome(1)
        eventually(lambda: len(store.stored) == 2)
        assert (failures(written.metrics), written.writer.trouble()) == ([], "")


def test_who_is_answered_before_the_store_tells_may_have_given_up_too(tmp_path: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    with writing(store, tmp_path) as written:
        given_up, other = (written.writer.accept(request(number), "http") for number in range(2))
        eventually(lambda: written.spool.state().pending_requests == 2)
        given_up.cancel()
        written.writer.hurry()
        assert other.result(30) == Outcome(1)
        assert written.writer.accept(request(3), "http").result(30) == Outcome(1)


def test_who_cannot_be_kept_may_have_given_up_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_fail = threading.Event(), threading.Event()

    def unwritable(_spool: Spool, _arrivals: object) -> list[Outcome]:
        began.set()
        assert may_fail.wait(60)
        raise OSError("the disk is gone")

    monkeypatch.setattr(Spool, "append", unwritable)
    with writing(FakeStore(), tmp_path) as written:
        given_up = written.writer.accept(request(1), "http")
        assert began.wait(60)
        given_up.cancel()
        may_fail.set()
        with pytest.raises(StoreUnavailableError, match="cannot be kept"):
            written.writer.accept(request(2), "http").result(30)


def test_a_client_that_goes_away_while_it_waits_is_no_trouble(tmp_path: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    with unstarted(store, tmp_path) as (writer, metrics), serving(writer, metrics) as doors:
        with closing(HTTPConnection("127.0.0.1", doors.http_port)) as leaving:
            leaving.request("POST", "/v1/traces", request(1), PROTOBUF)
            eventually(lambda: writer.spool.state().pending_requests == 1)
        with grpc.insecure_channel(f"127.0.0.1:{doors.grpc_port}") as channel:
            call = channel.unary_unary(EXPORT).future(request(2))
            eventually(lambda: writer.spool.state().pending_requests == 2)
            call.cancel()
        store.gate.set()
        assert doors.post(request(3), **PROTOBUF).status_code == 200
        eventually(lambda: len(store.stored) == 3)
        assert failures(metrics) == []


def test_who_waits_for_the_store_when_the_doors_shut_is_told_that_its_request_is_kept(tmp_path: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    impatient = WriterLimits(drain=QUICK, stop_s=0.0)
    with ThreadPoolExecutor() as sending, unstarted(store, tmp_path, impatient) as (writer, metrics):
        with serving(writer, metrics) as doors:
            answer = sending.submit(doors.post, request(1), **PROTOBUF)
            by_grpc = sending.submit(doors.over_grpc, request(2))
            eventually(lambda: writer.spool.state().pending_requests == 2)
        assert answer.result(30).status_code == 200
        assert not by_grpc.result(30).HasField("partial_success")
        assert not store.stored


def test_a_collector_that_stops_answers_before_its_doors_shut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FakeStore()
    store.gate.clear()
    monkeypatch.setattr(StoreOpening, "__call__", lambda _: store.open())
    collector = Collector(CollectorSettings(tmp_path, NOBODY, disk_free_bytes_min=0), WriterLimits(drain=QUICK))
    with ThreadPoolExecutor() as sending:
        collector.start()
        url = collector.urls()["otlp_http"]
        answer = sending.submit(httpx.post, url, content=request(1), headers=PROTOBUF, timeout=60)
        is_inserting = store.inserting.wait(60)
        stopping = sending.submit(collector.stop)
        try:
            assert (is_inserting, answer.result(60).status_code) == (True, 200)
            assert not store.stored
        finally:
            store.gate.set()
            stopping.result(60)


def test_who_cannot_be_answered_when_the_doors_shut_is_told_to_come_back(caplog: pytest.LogCaptureFixture) -> None:
    metrics, silent = CollectorMetrics(), Silent()
    app = HttpReceiver(silent, metrics).app
    answer = answered_at_stop(app, "/v1/traces", silent.asked, caplog)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert Status.FromString(answer.content).message == "the collector is stopping"
    assert metrics.registry.get_sample_value("tachograph_otlp_requests_total", {"door": "http", "status": "503"}) == 1


def test_so_is_who_asked_at_any_other_door(caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Event()

    async def wait(_: Request) -> Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("it waits for ever")

    answer = answered_at_stop(Starlette(routes=[Route("/", wait, methods=["POST"])]), "/", asked, caplog)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json() == {"error": "the collector is stopping"}


def test_who_gave_an_order_is_told_why_it_has_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may_end = threading.Event(), threading.Event()

    def take_long(*_: object) -> str:
        asked.set()
        assert may_end.wait(60)
        return "too late"

    monkeypatch.setattr(Orders, "carry_out", take_long)
    nothing = Holdings(lambda: nullcontext(None), "", {}, None)  # type: ignore[arg-type] -- no order gets to it
    app = Starlette(routes=ControlReceiver(Orders(nothing), make_key(tmp_path)).routes)
    try:
        key = {"authorization": f"Bearer {read_key(tmp_path)}"}
        answer = answered_at_stop(app, f"{CONTROL_PATH}/{TELL_RETENTION}", asked, caplog, content=b"{}", headers=key)
    finally:
        may_end.set()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json() == {"error": "the collector is stopping"}


class Silent:
    """An `Acceptor` that never answers."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def accept(self, _request: bytes, _door: str) -> "Future[Outcome]":
        self.asked.set()
        return Future()


def answered_at_stop(
    app: Starlette, path: str, asked: threading.Event, caplog: pytest.LogCaptureFixture, **sent: Any
) -> httpx.Response:
    """What a request is told that waits when its server stops; nothing is raised on the way."""
    listening = bind("127.0.0.1", 0, "no setting")
    server = HttpServer(app, listening, "stopped")
    url = f"http://127.0.0.1:{port_of(listening)}{path}"
    with ThreadPoolExecutor() as sending, caplog.at_level(logging.ERROR):
        server.start()
        sent = {"content": request(1), "headers": PROTOBUF, **sent}
        answer: Future[httpx.Response] = sending.submit(httpx.post, url, timeout=60, **sent)
        assert asked.wait(60)
        server.stop()
        told = answer.result(30)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    return told


@contextmanager
def unstarted(
    store: FakeStore, directory: Path, limits: WriterLimits | None = None
) -> Iterator[tuple[Writer, CollectorMetrics]]:
    """A writer over a store in hand, for `serving` to start and stop."""
    metrics = CollectorMetrics()
    with closing(Spool(spool_file(directory), ROOMY)) as spool:
        try:
            yield Writer(spool, store.open, metrics, limits or WriterLimits(drain=QUICK)), metrics
        finally:
            store.gate.set()

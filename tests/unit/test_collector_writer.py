"""The writer's promises, over a store that the test holds in its hand."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from collector.acceptance import MalformedRequestError, Outcome, QueueFullError, StoreUnavailableError
from collector.decoding.wire import request_id_of
from collector.metrics import CollectorMetrics
from collector.request_store import ReceivedRequest
from collector.writer import Writer, WriterLimits
from tests.fixtures.contract_cases import SpanCase, request_of

QUICK = WriterLimits(commit_interval_s=0.0, retry_for_s=0.2)


class FakeStore:
    """Keeps batches. `gate` holds inserts back while clear; `faults` are raised by the next inserts."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.known: dict[str, Outcome] = {}
        self.faults: list[Exception] = []
        self.unreadable: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.inserting = threading.Event()
        self.attempts = 0

    def outcomes(self, request_ids: Iterable[str]) -> dict[str, Outcome]:
        return {one: self.known[one] for one in request_ids if one in self.known}

    def insert(self, batch: list[ReceivedRequest]) -> None:
        self.attempts += 1
        self.inserting.set()
        assert self.gate.wait(10)
        if self.faults:
            raise self.faults.pop(0)
        ids = [one.request_id for one in batch]
        if self.unreadable & set(ids):
            raise DatabaseError("Code: 444. corrupted", code=444, name="UNKNOWN_PROTOBUF_FORMAT")
        self.batches.append(ids)
        self.known |= dict.fromkeys(ids, Outcome(stored=1))


def request(number: int) -> bytes:
    return request_of([SpanCase(str(number), attributes={"graph.sequence": number})])


@contextmanager
def writing(store: FakeStore, limits: WriterLimits = QUICK) -> Iterator[tuple[Writer, CollectorMetrics]]:
    metrics = CollectorMetrics()
    writer = Writer(store, metrics, limits)
    writer.start()
    try:
        yield writer, metrics
    finally:
        store.gate.set()
        writer.stop()


@contextmanager
def first_insert_held_back(store: FakeStore, writer: Writer) -> Iterator[Callable[[], Future[Outcome]]]:
    """While the context lasts the writer is busy with one request, so that others gather."""
    store.gate.clear()
    answer = writer.accept(request(-1))
    assert store.inserting.wait(10)
    yield lambda: answer
    store.gate.set()


def test_what_gathers_during_an_insert_is_one_batch() -> None:
    store = FakeStore()
    with writing(store) as (writer, _):
        with first_insert_held_back(store, writer):
            answers = [writer.accept(request(n)) for n in range(50)]
        assert [answer.result(10).stored for answer in answers] == [1] * 50
    assert [len(batch) for batch in store.batches] == [1, 50]


def test_no_acknowledgement_before_it_is_stored() -> None:
    store = FakeStore()
    with writing(store) as (writer, _):
        with first_insert_held_back(store, writer) as held:
            assert not held().done()
        assert held().result(10) == Outcome(stored=1)


def test_the_same_request_twice_in_a_batch_and_later() -> None:
    store = FakeStore()
    with writing(store) as (writer, metrics):
        with first_insert_held_back(store, writer):
            answers = [writer.accept(request(1)) for _ in range(3)]
        outcomes = [answer.result(10) for answer in answers]
        assert [outcome.duplicate for outcome in outcomes] == [False, True, True]
        assert writer.accept(request(1)).result(10) == Outcome(stored=1, duplicate=True)
        assert metrics.registry.get_sample_value("tachograph_duplicate_requests_total") == 3
        assert metrics.registry.get_sample_value("tachograph_executions_stored_total") == 2
    assert store.batches[1] == [request_id_of(request(1))]


def test_a_full_queue_turns_requests_away_and_recovers() -> None:
    store = FakeStore()
    taken: list[Future[Outcome]] = []
    with writing(store, QUICK._replace(queue_bytes=20_000)) as (writer, metrics):
        with first_insert_held_back(store, writer):
            with pytest.raises(QueueFullError) as full:
                taken.extend(writer.accept(request(n)) for n in range(1000))
            assert full.value.retry_after_s > 0
            assert 0 < metrics.registry.get_sample_value("tachograph_writer_queue_bytes") <= 20_000  # type: ignore[operator]
        assert len(taken) > 1
        assert all(answer.result(10).stored for answer in taken)
        assert writer.accept(request(1000)).result(10).stored == 1


def test_batches_are_bounded() -> None:
    store = FakeStore()
    with writing(store, QUICK._replace(batch_bytes=5_000)) as (writer, _):
        with first_insert_held_back(store, writer):
            answers = [writer.accept(request(n)) for n in range(20)]
        assert all(answer.result(10).stored for answer in answers)
    assert max(len(batch) for batch in store.batches) <= 2


def test_a_passing_fault_is_tried_again_with_the_same_batch() -> None:
    store = FakeStore()
    store.faults = [OperationalError("away"), DatabaseError("Code: 241", code=241, name="MEMORY_LIMIT_EXCEEDED")]
    with writing(store, QUICK._replace(retry_for_s=5.0)) as (writer, metrics):
        assert writer.accept(request(1)).result(10) == Outcome(stored=1)
        assert writer.trouble() == ""
        failures = "tachograph_insert_failures_total"
        assert metrics.registry.get_sample_value(failures, {"error": "OperationalError"}) == 1
        assert metrics.registry.get_sample_value(failures, {"error": "MEMORY_LIMIT_EXCEEDED"}) == 1


def test_a_lasting_fault_is_told_and_the_next_request_gets_its_chance() -> None:
    store = FakeStore()
    store.faults = [OperationalError("away")] * 1000
    with writing(store) as (writer, _):
        error = writer.accept(request(1)).exception(10)
        assert isinstance(error, StoreUnavailableError)
        assert "away" in str(error)
        assert "away" in writer.trouble()
        store.faults.clear()
        assert writer.accept(request(1)).result(10) == Outcome(stored=1)
        assert writer.trouble() == ""


def test_an_unforeseen_fault_does_not_kill_the_thread() -> None:
    store = FakeStore()
    store.faults = [ZeroDivisionError("a defect")]
    with writing(store) as (writer, _):
        assert isinstance(writer.accept(request(1)).exception(10), StoreUnavailableError)
        assert writer.accept(request(2)).result(10).stored == 1


def test_an_unreadable_request_sinks_no_neighbour() -> None:
    store = FakeStore()
    store.unreadable = {request_id_of(request(2))}
    with writing(store) as (writer, _):
        with first_insert_held_back(store, writer):
            answers = [writer.accept(request(n)) for n in range(4)]
        assert [bool(answer.exception(10)) for answer in answers] == [False, False, True, False]
        assert isinstance(answers[2].exception(), MalformedRequestError)


def test_stop_stores_what_waits_and_takes_nothing_more() -> None:
    store = FakeStore()
    with writing(store, QUICK._replace(commit_interval_s=60.0)) as (writer, _):
        first = writer.accept(request(0))
        assert first.result(10).stored == 1
        waiting = [writer.accept(request(n)) for n in range(1, 4)]
        began = time.monotonic()
        writer.stop()
        assert time.monotonic() - began < 5
        assert [answer.result(0).stored for answer in waiting] == [1, 1, 1]
        with pytest.raises(StoreUnavailableError):
            writer.accept(request(9))


def test_stop_does_not_wait_for_a_store_that_is_away() -> None:
    store = FakeStore()
    store.faults = [OperationalError("away")] * 1000
    with writing(store, QUICK._replace(retry_for_s=60.0)) as (writer, _):
        answer = writer.accept(request(1))
        assert store.inserting.wait(10)
        began = time.monotonic()
        writer.stop()
        assert time.monotonic() - began < 3
        assert isinstance(answer.exception(0), StoreUnavailableError)


def test_garbage_is_refused_at_once_and_nothing_is_an_empty_success() -> None:
    store = FakeStore()
    with writing(store) as (writer, _):
        with pytest.raises(MalformedRequestError):
            writer.accept(b"\x93garbage")
        assert writer.accept(b"").result(0) == Outcome()
    assert not store.attempts

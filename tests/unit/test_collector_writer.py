"""The writer's promises, over a store that the test holds in its hand."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from structlog.testing import capture_logs

from collector.acceptance import (
    MalformedRequestError,
    Outcome,
    QueueFullError,
    ReceivedRequest,
    StoreUnavailableError,
    token_of,
)
from collector.decoding.wire import request_id_of
from collector.spool.records import Ledger, SpoolLimits
from collector.writer import Writer, WriterLimits
from tests.fixtures.contract_cases import SpanCase, request_of
from tests.fixtures.fake_store import QUICK, FakeStore, Written, closed_spool, request, writing


@contextmanager
def first_insert_held_back(store: FakeStore, writer: Writer) -> Iterator[Callable[[], Future[Outcome]]]:
    """While the context lasts the drain is busy with one request, so that others gather."""
    store.gate.clear()
    answer = writer.accept(request(-1), "grpc")
    assert store.inserting.wait(60)
    yield lambda: answer
    store.gate.set()


def eventually(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


def drained(written: Written) -> bool:
    return not written.spool.state().pending_requests


def test_what_gathers_during_an_insert_is_one_batch(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path) as (writer, *_):
        with first_insert_held_back(store, writer):
            answers = [writer.accept(request(n), "grpc") for n in range(50)]
            eventually(lambda: writer.spool.state().pending_requests == 51)
        assert [answer.result(10).stored for answer in answers] == [1] * 50
    assert [len(batch) for batch in store.batches] == [1, 50]


def test_an_insert_waits_for_senders_that_were_just_answered(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path, WriterLimits(drain=QUICK._replace(gather_s=60.0))) as (writer, *_):
        with first_insert_held_back(store, writer) as first:
            answers = [writer.accept(request(n), "grpc") for n in range(3)]
            eventually(lambda: writer.spool.state().pending_requests == 4)
        assert first().result(10).stored == 1
        answers.append(writer.accept(request(3), "grpc"))
        assert [answer.result(10).stored for answer in answers] == [1] * 4
    assert [len(batch) for batch in store.batches] == [1, 4]


def test_a_full_batch_waits_for_nobody(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path, WriterLimits(drain=QUICK._replace(gather_s=60.0, batch_bytes=1))) as (writer, *_):
        with first_insert_held_back(store, writer):
            answers = [writer.accept(request(n), "grpc") for n in range(3)]
            eventually(lambda: writer.spool.state().pending_requests == 4)
        assert [answer.result(10).stored for answer in answers] == [1] * 3


def test_an_acknowledgement_means_on_disk(tmp_path: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    limits = WriterLimits(drain=QUICK._replace(answer_within_s=0.0))
    with writing(store, tmp_path, limits) as (writer, spool, _):
        answers = [writer.accept(request(n), "http") for n in range(5)]
        assert [answer.result(10) for answer in answers] == [Outcome(stored=1)] * 5
        assert not store.stored
        with closing(sqlite3.connect(spool.file)) as beside:
            assert beside.execute("SELECT count(DISTINCT request_id) FROM requests").fetchone() == (5,)
    assert store.stored == [request_id_of(request(n)) for n in range(5)]


def test_while_clickhouse_is_away_the_contract_answers_at_once(tmp_path: Path) -> None:
    store = FakeStore()
    store.faults = [OperationalError("away")] * 10_000
    broken = request_of([SpanCase("good"), SpanCase("bad", attributes={"graph.gpu_time_ns": -5})])
    with writing(store, tmp_path) as (writer, *_):
        writer.accept(request(1), "grpc")
        eventually(lambda: "away" in writer.trouble())
        began = time.monotonic()
        assert writer.accept(broken, "grpc").result(10) == Outcome(1, {"graph.gpu_time_ns is negative": 1})
        assert time.monotonic() - began < 5
        store.faults.clear()
        eventually(lambda: not writer.trouble() and len(store.stored) == 2)


def test_the_same_request_twice_in_a_batch_later_and_after_a_restart(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path) as written:
        writer = written.writer
        with first_insert_held_back(store, writer):
            answers = [writer.accept(request(1, spans=3), "grpc") for _ in range(3)]
        outcomes = [answer.result(10) for answer in answers]
        assert [outcome.duplicate for outcome in outcomes] == [False, True, True]
        assert writer.accept(request(1, spans=3), "http").result(10) == Outcome(stored=3, duplicate=True)
        eventually(lambda: drained(written))
        assert written.metric("duplicate_requests_total") == 3
        assert written.metric("executions_stored_total") == 4
    store.known.clear()  # ClickHouse has forgotten; the spool has not.
    with writing(store, tmp_path) as (writer, spool, _):
        assert writer.accept(request(1, spans=3), "grpc").result(10) == Outcome(stored=3, duplicate=True)
        assert spool.ledger() == {
            "grpc": Ledger(received=13, stored=4, deduplicated=9),
            "http": Ledger(received=3, deduplicated=3),
        }
    assert store.stored.count(request_id_of(request(1, spans=3))) == 1


@pytest.mark.parametrize("takes", [True, False])
def test_an_insert_that_clickhouse_knows_nothing_of_afterwards_is_told(tmp_path: Path, takes: bool) -> None:
    store = FakeStore()
    if not takes:
        store.insert = lambda *_: None  # type: ignore[method-assign,assignment]
    with capture_logs() as logged, writing(store, tmp_path) as (writer, *_):
        assert writer.accept(request(1), "grpc").result(60).stored == 1
    told = [one for one in logged if "knows nothing of them" in one["event"]]
    assert [(one["log_level"], one["requests"]) for one in told] == ([] if takes else [("error", 1)])


def test_an_insert_that_was_noted_and_is_in_no_table_is_made_by_another_token(tmp_path: Path) -> None:
    store = FakeStore()
    store.tokens = [token_of([request_id_of(request(1))])]
    with capture_logs() as logged, writing(store, tmp_path) as written:
        assert written.writer.accept(request(1), "grpc").result(60).stored == 1
        eventually(lambda: drained(written))
        assert written.spool.ledger() == {"grpc": Ledger(received=1, stored=1)}
    assert store.stored == [request_id_of(request(1))]
    assert store.attempts == 3, "once more by the same token, in case that it was only late, then by another"
    assert {one["log_level"] for one in logged} <= {"info", "warning"}


def test_a_request_that_only_clickhouse_remembers_is_not_stored_again(tmp_path: Path) -> None:
    store = FakeStore()
    store.known = {request_id_of(request(1)): Outcome(stored=1)}
    with writing(store, tmp_path) as written:
        with first_insert_held_back(store, written.writer):
            answers = [written.writer.accept(request(n), "grpc") for n in (1, 2)]
            eventually(lambda: written.spool.state().pending_requests == 3)
        assert [answer.result(10).duplicate for answer in answers] == [True, False]
        eventually(lambda: drained(written))
        assert written.spool.ledger() == {"grpc": Ledger(received=3, stored=2, deduplicated=1)}
    assert store.batches[1:] == [[request_id_of(request(2))]]


def test_full_memory_turns_requests_away_and_recovers(tmp_path: Path) -> None:
    store = FakeStore()
    taken: list[Future[Outcome]] = []
    with writing(store, tmp_path, WriterLimits(queue_bytes=20_000, drain=QUICK)) as written:
        writer = written.writer
        with first_insert_held_back(store, writer):
            with pytest.raises(QueueFullError) as full:
                taken.extend(writer.accept(request(n), "grpc") for n in range(1000))
            assert full.value.retry_after_s > 0
            assert 0 < written.metric("writer_queue_bytes") <= 20_000
            assert written.metric("requests_turned_away_total", reason="memory") == 1
        assert len(taken) > 1
        assert all(answer.result(10).stored for answer in taken)
        assert writer.accept(request(1000), "grpc").result(10).stored == 1


def test_a_full_spool_turns_requests_away_keeps_what_it_has_and_recovers(tmp_path: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    limits = WriterLimits(drain=QUICK._replace(answer_within_s=0.0))
    with writing(store, tmp_path, limits, SpoolLimits(bytes_max=20_000, free_bytes_min=0)) as written:
        taken: list[Outcome] = []
        with pytest.raises(QueueFullError, match="TACHOGRAPH_SPOOL_BYTES_MAX") as full:
            taken.extend(written.writer.accept(request(n), "grpc").result(10) for n in range(1000))
        assert full.value.retry_after_s > 0
        assert written.spool.state().pending_requests == len(taken) > 1
        assert written.metric("requests_turned_away_total", reason="spool_bytes") == 1
        store.gate.set()
        eventually(lambda: drained(written))
        assert written.writer.accept(request(1000), "grpc").result(10).stored == 1
    assert store.stored == [request_id_of(request(n)) for n in (*range(len(taken)), 1000)]


def test_a_disk_with_too_little_free_turns_requests_away(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path, spool_limits=SpoolLimits(free_bytes_min=2**60)) as written:
        with pytest.raises(QueueFullError, match="TACHOGRAPH_DISK_FREE_BYTES_MIN"):
            written.writer.accept(request(1), "grpc")
        assert written.metric("requests_turned_away_total", reason="disk_free") == 1


def test_batches_are_bounded(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path, WriterLimits(drain=QUICK._replace(batch_bytes=5_000))) as (writer, *_):
        with first_insert_held_back(store, writer):
            answers = [writer.accept(request(n), "grpc") for n in range(20)]
        assert all(answer.result(10).stored for answer in answers)
    assert max(len(batch) for batch in store.batches) <= 2


def test_a_passing_fault_is_tried_again_with_the_same_batch(tmp_path: Path) -> None:
    store = FakeStore()
    store.faults = [OperationalError("away"), DatabaseError("no memory", code=241, name="MEMORY_LIMIT_EXCEEDED")]
    with writing(store, tmp_path) as written:
        written.writer.accept(request(1), "grpc").result(10)
        eventually(lambda: drained(written) and not written.writer.trouble())
        assert written.metric("insert_failures_total", error="OperationalError") == 1
        assert written.metric("insert_failures_total", error="MEMORY_LIMIT_EXCEEDED") == 1
    assert store.opened == 3, "after a fault the store is opened anew"
    assert store.stored == [request_id_of(request(1))]


def test_an_answer_lost_after_the_insert_stores_once(tmp_path: Path) -> None:
    store = FakeStore()
    store.lost = [OperationalError("connection reset")]
    with writing(store, tmp_path) as written:
        written.writer.accept(request(1), "grpc").result(10)
        eventually(lambda: drained(written))
        assert written.spool.ledger() == {"grpc": Ledger(received=1, stored=1)}
    assert store.stored == [request_id_of(request(1))]


def test_an_insert_that_clickhouse_noted_and_lost_is_made_again(tmp_path: Path) -> None:
    store = FakeStore()
    one = request_id_of(request(1))
    store.tokens, store.vanished, store.known = [token_of([one])], {one}, {one: Outcome(stored=1)}
    with closing(closed_spool(tmp_path)) as spool:
        spool.append([ReceivedRequest.of(one, request(1), 1, "grpc", 1)])
        spool.next_batch(10**6)
    with writing(store, tmp_path) as written:
        eventually(lambda: drained(written))
        assert written.spool.ledger() == {"grpc": Ledger(received=1, stored=1)}
    assert store.stored == [one]


def test_one_that_fails_after_its_outcome_was_forgotten_is_made_again(tmp_path: Path) -> None:
    """Then nothing tells any more that its executions are missing; of one so old, not even that it is unknown."""
    store = FakeStore()
    one, arrived = request_id_of(request(1)), 1
    store.tokens, store.vanished, store.known = [token_of([one])], {one}, {one: Outcome(stored=1)}
    store.forgetting = [OperationalError("connection reset")]
    with closing(closed_spool(tmp_path)) as spool:
        spool.append([ReceivedRequest.of(one, request(1), 1, "grpc", arrived)])
        spool.next_batch(10**6)
    with writing(store, tmp_path) as written:
        eventually(lambda: drained(written))
        assert written.spool.ledger() == {"grpc": Ledger(received=1, stored=1)}
    assert store.stored == [one]


def test_where_nothing_can_be_forgotten_what_is_unknown_is_told_and_counts_once(tmp_path: Path) -> None:
    """On a cluster a replica that lags behind knows nothing of an insert, and nothing is lost."""
    store = FakeStore()
    store.forgets = False
    store.outcomes = lambda _: {}  # type: ignore[method-assign,assignment]
    with capture_logs() as logged, writing(store, tmp_path) as written:
        assert written.writer.accept(request(1), "grpc").result(60).stored == 1
        eventually(lambda: drained(written))
    assert store.stored == [request_id_of(request(1))]
    assert [one["log_level"] for one in logged if "look for them" in one["event"]] == ["error"]


def test_an_unforeseen_fault_does_not_end_the_drain(tmp_path: Path) -> None:
    store = FakeStore()
    store.faults = [ZeroDivisionError("a defect")]
    with writing(store, tmp_path) as written:
        answers = [written.writer.accept(request(n), "grpc") for n in (1, 2)]
        assert [answer.result(10).stored for answer in answers] == [1, 1]
        eventually(lambda: drained(written))
    assert sorted(store.stored) == sorted(request_id_of(request(n)) for n in (1, 2))


def test_a_poison_request_is_found_and_set_aside_and_the_rest_goes_in(tmp_path: Path) -> None:
    store = FakeStore()
    poison = {request_id_of(request(n)) for n in (2, 5)}
    store.unreadable = set(poison)
    with writing(store, tmp_path) as written:
        with first_insert_held_back(store, written.writer):
            answers = [written.writer.accept(request(n), "grpc") for n in range(9)]
            eventually(lambda: written.spool.state().pending_requests == 10)
        eventually(lambda: drained(written))
        state = written.spool.state()
        assert state.set_aside_requests == 2
        assert written.spool.ledger() == {"grpc": Ledger(received=10, stored=8, set_aside=2)}
        eventually(lambda: not written.writer.trouble())
    assert all(answer.result(10).stored == 1 for answer in answers), "set aside is kept: its sender need not keep it"
    assert store.stored[1:] == [request_id_of(request(n)) for n in range(9) if n not in (2, 5)]


def test_a_request_that_fails_for_long_while_others_go_in_is_set_aside(tmp_path: Path) -> None:
    store = FakeStore()
    store.unreadable = {request_id_of(request(0))}
    store.fault_of_unreadable = DatabaseError("something new", code=9999, name="SOMETHING_NEW")
    limits = WriterLimits(drain=QUICK._replace(suspect_after_s=0.05, answer_within_s=0.0))
    with writing(store, tmp_path, limits) as written:
        written.writer.accept(request(0), "grpc").result(10)
        eventually(lambda: store.attempts > 8)
        assert written.spool.state().pending_requests == 1, "with nothing to compare, the store may be at fault"
        written.writer.accept(request(1), "grpc").result(10)
        eventually(lambda: drained(written))
        assert written.spool.ledger() == {"grpc": Ledger(received=2, stored=1, set_aside=1)}


def test_a_store_that_refuses_everything_is_waited_for(tmp_path: Path) -> None:
    store = FakeStore()
    store.faults = [DatabaseError("no such column", code=16, name="NO_SUCH_COLUMN_IN_TABLE")] * 1000
    limits = WriterLimits(drain=QUICK._replace(suspect_after_s=0.02, answer_within_s=0.0, batch_bytes=1))
    with writing(store, tmp_path, limits) as written:
        for n in range(3):
            written.writer.accept(request(n), "grpc").result(10)
        eventually(lambda: store.attempts > 20)
        assert written.spool.state().pending_requests == 3
        store.faults.clear()
        eventually(lambda: drained(written))
        assert written.spool.ledger() == {"grpc": Ledger(received=3, stored=3)}


def test_stop_stores_what_waits_and_takes_nothing_more(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path, WriterLimits(drain=QUICK._replace(gather_s=60.0))) as (writer, *_):
        assert writer.accept(request(0), "grpc").result(10).stored == 1
        waiting = [writer.accept(request(n), "grpc") for n in range(1, 4)]
        began = time.monotonic()
        writer.stop()
        assert time.monotonic() - began < 5
        assert [answer.result(0).stored for answer in waiting] == [1, 1, 1]
        assert len(store.stored) == 4
        with pytest.raises(StoreUnavailableError):
            writer.accept(request(9), "grpc")


def test_stop_does_not_wait_for_a_store_that_is_away_and_the_next_start_stores(tmp_path: Path) -> None:
    store = FakeStore()
    store.faults = [OperationalError("away")] * 10_000
    with writing(store, tmp_path) as (writer, *_):
        answer = writer.accept(request(1), "grpc")
        assert answer.result(10).stored == 1
        began = time.monotonic()
        writer.stop()
        assert time.monotonic() - began < 3
    store.faults.clear()
    with writing(store, tmp_path) as written:
        eventually(lambda: drained(written))
        assert written.spool.ledger() == {"grpc": Ledger(received=1, stored=1)}
    assert store.stored == [request_id_of(request(1))]


def test_stop_leaves_a_hanging_insert_and_the_next_start_makes_it_once(tmp_path: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    limits = WriterLimits(drain=QUICK._replace(answer_within_s=0.0), stop_s=0.1)
    with writing(store, tmp_path, limits) as (writer, *_):
        assert writer.accept(request(1), "grpc").result(10).stored == 1
        assert store.inserting.wait(60)
        writer.stop()
    eventually(lambda: store.stored == [request_id_of(request(1))])
    with writing(store, tmp_path) as written:
        eventually(lambda: drained(written))
    assert store.stored == [request_id_of(request(1))]


def test_garbage_is_refused_at_once_and_nothing_is_an_empty_success(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path) as (writer, *_):
        with pytest.raises(MalformedRequestError):
            writer.accept(b"\x93garbage", "grpc")
        assert writer.accept(b"", "grpc").result(0) == Outcome()
    assert not store.attempts
    with closing(closed_spool(tmp_path)) as spool:
        assert spool.ledger() == {}

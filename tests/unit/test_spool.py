"""The spool alone: whatever happens in whatever order, its ledger adds up, and each request goes out once, in order."""

import random
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from collector.acceptance import Outcome, ReceivedRequest, token_of
from collector.spool.database import SpoolError, bytes_on_disk, spool_file
from collector.spool.records import Batch, Kept, Ledger, SpoolLimits, SpoolState
from collector.spool.spool import REQUEST_OVERHEAD_BYTES, Spool

UNBOUNDED = SpoolLimits(bytes_max=0, free_bytes_min=0)


def received(number: int, spans: int = 1, door: str = "grpc", size: int = 10) -> ReceivedRequest:
    # Noise, which takes as much room compressed.
    return ReceivedRequest.of(f"{number:032x}", random.Random(number).randbytes(size), 1_000 + number, door, spans)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with closing(Spool(spool_file(tmp_path), UNBOUNDED)) as opened:
        yield opened


def test_batches_come_in_order_within_their_bytes_and_stay_as_they_were_fixed(spool: Spool) -> None:
    spool.append(received(n) for n in range(5))
    first = spool.next_batch(bytes_max=3 * (10 + REQUEST_OVERHEAD_BYTES))
    assert first is not None
    assert [one.request_id for one in first.requests] == [received(n).request_id for n in range(3)]
    assert first.token == token_of(one.request_id for one in first.requests)
    assert not first.attempted
    spool.append([received(9)])
    assert spool.next_batch(bytes_max=10**9) == first._replace(attempted=True)
    behind = spool.next_batch(bytes_max=10**9, after=first.last_position)
    assert behind is not None
    assert [one.request_id for one in behind.requests] == [received(n).request_id for n in (3, 4, 9)]


def test_a_request_larger_than_a_batch_is_one(spool: Spool) -> None:
    spool.append([received(1, size=5_000), received(2)])
    batch = spool.next_batch(bytes_max=100)
    assert batch is not None
    assert len(batch.requests) == 1


def test_what_is_told_of_what_waits(spool: Spool) -> None:
    assert spool.state() == SpoolState()
    spool.append([received(1), received(2), received(1)])
    size = 10 + REQUEST_OVERHEAD_BYTES
    assert spool.state() == SpoolState(2, 2 * size, 1_001)
    batch = spool.next_batch(bytes_max=1)
    assert batch is not None
    spool.set_aside(batch, "poison")
    assert spool.state() == SpoolState(1, size, 1_002, 1, size)


def test_outcomes_are_remembered_within_bounds(tmp_path: Path) -> None:
    now_ms = [10**12]
    limits = UNBOUNDED._replace(answered_max=3, answered_s=100)
    with closing(Spool(spool_file(tmp_path), limits, lambda: now_ms[0])) as spool:

        def store(number: int) -> None:
            spool.append([received(number)])
            batch = spool.next_batch(10**9)
            assert batch is not None
            spool.finish(batch, {one.request_id: Outcome(1) for one in batch.requests})

        for number in range(5):
            store(number)
        assert spool.append([received(4)]) == [Outcome(1, duplicate=True)]
        assert spool.append([received(0)]) == [Kept.NEW], "beyond the number"
        now_ms[0] += 101_000
        store(7)
        assert spool.append([received(4)]) == [Kept.NEW], "beyond the age"
        assert spool.append([received(7)]) == [Outcome(1, duplicate=True)]


def test_an_outcome_is_remembered_whole(spool: Spool) -> None:
    outcome = Outcome(3, {"graph.name is missing": 2}, 4, 5, 1)
    spool.append([received(1, spans=14)])
    batch = spool.next_batch(1)
    assert batch is not None
    spool.finish(batch, {batch.requests[0].request_id: outcome})
    assert spool.append([received(1, spans=14)]) == [outcome._replace(duplicate=True)]
    assert spool.ledger() == {"grpc": Ledger(received=28, stored=3, deduplicated=5 + 14, refused=2, other_spans=4)}


def test_space_is_given_back_after_draining(spool: Spool) -> None:
    for n in range(20):
        spool.append([received(n, size=1_000_000)])
    assert bytes_on_disk(spool.file) > 20_000_000
    while batch := spool.next_batch(10**7):
        spool.finish(batch, {one.request_id: Outcome(1) for one in batch.requests})
    spool.give_back_space()
    assert bytes_on_disk(spool.file) < 1_000_000


def test_one_collector_at_a_time_holds_a_spool(spool: Spool) -> None:
    with pytest.raises(SpoolError, match="is held by another process"):
        Spool(spool.file, UNBOUNDED)


@pytest.mark.parametrize(
    ("kept", "said"),
    [(0, "file is not a database"), (16384, "database disk image is malformed")],
    ids=["no spool", "damaged"],
)
def test_a_file_that_is_no_whole_spool_is_named_with_what_to_do(tmp_path: Path, kept: int, said: str) -> None:
    file = spool_file(tmp_path)
    Spool(file, UNBOUNDED).close()
    content = file.read_bytes()
    file.write_bytes(content[:kept] + b"x" * (len(content) - kept))
    with pytest.raises(SpoolError, match=rf"^the spool {file} is damaged \({said}\): stop the collector, move") as told:
        Spool(file, UNBOUNDED)
    assert "\n" not in str(told.value)


def test_threads_take_turns(spool: Spool) -> None:
    def fill(first: int) -> None:
        for n in range(first, first + 40):
            spool.append([received(n)])

    threads = [threading.Thread(target=fill, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    taken = 0
    while taken < 160:
        if batch := spool.next_batch(10**6):
            spool.finish(batch, {one.request_id: Outcome(1) for one in batch.requests})
            taken += len(batch.requests)
    for thread in threads:
        thread.join()
    assert spool.ledger() == {"grpc": Ledger(received=160, stored=160)}


class AnyOrder(RuleBasedStateMachine):
    """Accepting, storing, refusing, crashing and opening again, in any order.

    A crash leaves the files as they are at that instant, which is what the next process finds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.spool = self._open(Path(self.directory.name) / "0")
        self.lives = 0
        self.spans: dict[str, int] = {}
        self.order: list[str] = []
        self.stored: list[str] = []
        self.aside: set[str] = set()
        self.batch: Batch | None = None
        self.inserted: dict[str, set[str]] = {}

    def _open(self, data_dir: Path) -> Spool:
        return Spool(spool_file(data_dir), UNBOUNDED)

    @rule(numbers=st.lists(st.integers(0, 12), min_size=1, max_size=4), spans=st.integers(1, 3), door=st.sampled_from(["grpc", "http"]))  # fmt: skip
    def accept(self, numbers: list[int], spans: int, door: str) -> None:
        arrivals = [received(n, self.spans.get(received(n).request_id, spans), door) for n in numbers]
        for arrival, kept in zip(arrivals, self.spool.append(arrivals), strict=True):
            assert (kept is Kept.NEW) == (arrival.request_id not in self.spans)
            if kept is Kept.NEW:
                self.order.append(arrival.request_id)
            self.spans.setdefault(arrival.request_id, arrival.spans)

    @precondition(lambda self: self.batch is None)
    @rule(bytes_max=st.integers(1, 5_000))
    def take(self, bytes_max: int) -> None:
        self.batch = self.spool.next_batch(bytes_max)

    @precondition(lambda self: self.batch is not None)
    @rule()
    def insert(self) -> None:
        """Into ClickHouse, which takes each token once; the answer is not awaited."""
        assert self.batch is not None
        ids = {one.request_id for one in self.batch.requests}
        assert self.inserted.setdefault(self.batch.token, ids) == ids, "one token, one content"

    @precondition(lambda self: self.batch is not None)
    @rule()
    def finish(self) -> None:
        assert self.batch is not None
        self.insert()
        self.spool.finish(self.batch, {one.request_id: Outcome(one.spans) for one in self.batch.requests})
        self.stored += [one.request_id for one in self.batch.requests]
        self.batch = None

    @precondition(lambda self: self.batch is not None and self.batch.token not in self.inserted)
    @rule()
    def refuse(self) -> None:
        assert self.batch is not None
        if len(self.batch.requests) > 1:
            self.spool.split(self.batch)
        else:
            self.spool.set_aside(self.batch, "poison")
            self.aside.add(self.batch.requests[0].request_id)
        self.batch = None

    @precondition(lambda self: self.aside)
    @rule()
    def take_back(self) -> None:
        with closing(sqlite3.connect(self.spool.file, isolation_level=None)) as beside:
            beside.execute("UPDATE set_aside SET retry_wanted = 1")
        assert self.spool.take_back() == min(len(self.aside), 4)
        with closing(sqlite3.connect(self.spool.file)) as beside:
            left = {request_id for (request_id,) in beside.execute("SELECT request_id FROM set_aside")}
            self.order = [one for one in self.order if one not in self.aside - left]
            waiting = beside.execute("SELECT request_id FROM requests ORDER BY position").fetchall()
            self.order += [one for (one,) in waiting if one in self.aside - left]
        self.aside = left

    @rule()
    def crash(self) -> None:
        self.lives += 1
        data_dir = Path(self.directory.name) / str(self.lives)
        shutil.copytree(self.spool.file.parents[1], data_dir)
        self.spool.close()
        self.spool = self._open(data_dir)
        self.batch = None

    @invariant()
    def adds_up(self) -> None:
        ledger = self.spool.ledger().values()
        assert all(door.adds_up for door in ledger)
        assert sum(door.stored for door in ledger) == sum(self.spans[one] for one in self.stored)
        assert sum(door.set_aside for door in ledger) == sum(self.spans[one] for one in self.aside)
        with closing(sqlite3.connect(self.spool.file)) as beside:
            spans, requests, size = beside.execute("SELECT ifnull(sum(spans), 0), count(), ifnull(sum(size), 0) FROM requests").fetchone()  # fmt: skip
        assert sum(door.pending for door in ledger) == spans
        assert self.spool.state()[:2] == (requests, size)

    @invariant()
    def each_once_and_in_order(self) -> None:
        assert len(set(self.stored)) == len(self.stored)
        assert self.stored == [one for one in self.order if one in set(self.stored)]

    def teardown(self) -> None:
        while batch := self.spool.next_batch(2_000):
            self.batch = batch
            self.finish()
            self.each_once_and_in_order()
        assert set(self.stored) | self.aside == set(self.spans)
        self.spool.close()
        self.directory.cleanup()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)


def test_requests_that_an_earlier_collector_kept_as_they_came_go_out_like_others(spool: Spool) -> None:
    arrivals = [received(1, size=100), received(2, size=100)]
    spool.append(arrivals)
    with closing(sqlite3.connect(spool.file, isolation_level=None)) as earlier:
        earlier.execute("UPDATE requests SET request = ? WHERE position = 1", (arrivals[0].request,))
    batch = spool.next_batch(10**6)
    assert batch is not None
    assert batch.requests == arrivals

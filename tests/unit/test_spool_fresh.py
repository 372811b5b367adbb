"""Requests in memory beside the spool: bounded, and the same whether they are there or not."""

from contextlib import closing
from pathlib import Path

import pytest

from collector.acceptance import Outcome, ReceivedRequest
from collector.spool.fresh import FreshRequests
from collector.spool.spool import Spool

ARRIVALS = [ReceivedRequest(f"{n}", bytes([n]) * 100, n, "grpc", 1) for n in range(1, 9)]


def test_they_take_no_more_than_their_bound_and_leave_room_when_forgotten() -> None:
    fresh = FreshRequests(250)
    for one in ARRIVALS[:3]:
        fresh.keep(one.request_id, one.request)
    assert [fresh.get(one.request_id) for one in ARRIVALS[:3]] == [ARRIVALS[0].request, ARRIVALS[1].request, None]
    fresh.keep("1", b"another of the same name")
    fresh.forget("1")
    fresh.forget("absent")
    fresh.keep("3", ARRIVALS[2].request)
    assert (fresh.get("1"), fresh.get("3")) == (None, ARRIVALS[2].request)


@pytest.mark.parametrize("bytes_max", [0, 350, 10_000])
def test_a_batch_is_the_same_from_memory_and_from_disk(tmp_path: Path, bytes_max: int) -> None:
    with closing(Spool(tmp_path / "spool" / "spool.sqlite")) as spool:
        spool._fresh = FreshRequests(bytes_max)
        spool.append(ARRIVALS)
        batch = spool.next_batch(10**6)
        assert batch is not None
        assert batch.requests == ARRIVALS
        spool.finish(batch, {one.request_id: Outcome(1) for one in ARRIVALS})
        assert all(spool._fresh.get(one.request_id) is None for one in ARRIVALS)

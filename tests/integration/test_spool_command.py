"""`tachograph spool`: lists, retries, exports and discards what was set aside, beside a running collector and without one."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from collector.decoding.wire import request_id_of
from collector.spool.database import SpoolError, spool_file
from collector.spool.records import Ledger
from collector.spool.set_aside import ask_again, discard, export, set_aside, waiting
from tests.fixtures.fake_store import FakeStore, closed_spool, request, writing
from tests.fixtures.otlp_files import requests_in
from tests.fixtures.running import Addresses, free_addresses, tachograph
from tests.fixtures.senders import eventually


def spool_with_poison(data_dir: Path, store: FakeStore, count: int = 2) -> list[str]:
    """A spool in which so many requests were set aside and one waits; their ids."""
    ids = [request_id_of(request(n)) for n in range(count)]
    store.unreadable = set(ids)
    with writing(store, data_dir) as written:
        for n in range(count):
            written.writer.accept(request(n), "grpc")
        eventually(lambda: written.spool.state().set_aside_requests == count)
    with closing(closed_spool(data_dir)) as spool:
        store.gate.set()
        assert spool.state().set_aside_requests == count
    return ids


@pytest.fixture
def here(tmp_path: Path) -> Addresses:
    return free_addresses(tmp_path)


def test_lists_what_waits_and_what_was_set_aside(here: Addresses) -> None:
    ids = spool_with_poison(here.data_dir, FakeStore())
    shown = tachograph(here, "spool", "list")
    assert shown.returncode == 0, shown.stderr
    assert "Waiting to be stored: nothing" in shown.stdout
    assert all(one[:12] in shown.stdout for one in ids)
    told = json.loads(tachograph(here, "spool", "list", "--json").stdout)
    assert told["waiting"] == []
    assert {one["request_id"] for one in told["set_aside"]} == set(ids)
    assert {(one["door"], one["spans"], one["error"], one["retry_wanted"]) for one in told["set_aside"]} == {
        ("grpc", 1, "corrupted", False)
    }


def test_retry_beside_a_running_collector_and_before_its_start(tmp_path: Path) -> None:
    store = FakeStore()
    ids = spool_with_poison(tmp_path, store)
    file = spool_file(tmp_path)
    store.unreadable.clear()
    assert ask_again(file, [ids[0][:8]]) == 1
    assert [one.retry_wanted for one in set_aside(file)].count(True) == 1
    with writing(store, tmp_path) as written:
        eventually(lambda: ids[0] in store.stored)
        assert written.spool.state().set_aside_requests == 1
        assert ask_again(file, []) == 1
        eventually(lambda: ids[1] in store.stored)
        eventually(lambda: not written.spool.state().pending_requests)
        assert written.spool.ledger() == {"grpc": Ledger(received=2, stored=2)}
        assert set_aside(file) == waiting(file) == []


def test_export_and_discard(here: Addresses, tmp_path: Path) -> None:
    spool_with_poison(here.data_dir, FakeStore(), count=3)
    target = tmp_path / "aside.otlp.gz"
    done = tachograph(here, "spool", "export", str(target))
    assert (done.returncode, done.stdout.strip()) == (0, f"3 requests written to {target}"), done.stderr
    assert set(requests_in(target)) == {request(n) for n in range(3)}
    file = spool_file(here.data_dir)
    assert export(file, [request_id_of(request(1))], target) == 1
    assert list(requests_in(target)) == [request(1)]
    assert discard(file, [request_id_of(request(1))]) == 1
    assert {one.request_id for one in set_aside(file)} == {request_id_of(request(n)) for n in (0, 2)}


def test_what_cannot_be_done_is_one_line(here: Addresses) -> None:
    none = tachograph(here, "spool", "list")
    assert (none.returncode, len(none.stderr.splitlines())) == (1, 1)
    assert "there is no spool at" in none.stderr
    spool_with_poison(here.data_dir, FakeStore())
    file = spool_file(here.data_dir)
    with pytest.raises(SpoolError, match="begins with 'zz'"):
        ask_again(file, ["zz"])
    with pytest.raises(SpoolError, match="cannot be written"):
        export(file, [], here.data_dir / "nowhere" / "file")


def test_set_aside_counts_to_the_bound_and_discarding_makes_room(tmp_path: Path) -> None:
    spool_with_poison(tmp_path, FakeStore())
    with closing(closed_spool(tmp_path)) as spool:
        held = spool.state().set_aside_bytes
        assert held > 0
        discard(spool.file, [])
        spool.take_back()
        assert spool.state().set_aside_bytes == 0

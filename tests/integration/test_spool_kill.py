"""Kill -9 at any instant under load: what was acknowledged is stored, each execution once.

Ten kills here; `TACHOGRAPH_TEST_KILLS=60` is the nightly form. `TACHOGRAPH_TEST_SEED` repeats a run's instants.
"""

import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx

from collector.spool.database import opened_beside, spool_file
from collector.spool.ledger import read_ledger
from collector.spool.records import Ledger
from tests.fixtures.running import Addresses, free_addresses, started
from tests.fixtures.senders import Sender, eventually, senders, sending

KILLS = int(os.environ.get("TACHOGRAPH_TEST_KILLS", "10"))
LONGEST_LIFE_S = 1.0


def ready_url(addresses: Addresses) -> str:
    return f"http://127.0.0.1:{addresses.otlp_http_port}/healthz"


def pending(data_dir: Path) -> int:
    with closing(sqlite3.connect(spool_file(data_dir))) as beside:
        return int(beside.execute("SELECT count() FROM requests").fetchone()[0])


def stored(addresses: Addresses) -> dict[str, tuple[int, int, int]]:
    """By engine instance: rows, different executions, and the first execution missing."""
    query = """SELECT service_instance_id, count(), uniqExact(graph_sequence, span_id),
        arrayFirst(n -> NOT has(groupUniqArray(graph_sequence) AS there, n), range(toUInt64(max(graph_sequence) + 2)))
        FROM graph_executions GROUP BY 1 FORMAT JSONCompact"""
    rows = httpx.post(
        addresses.clickhouse_url.replace("/tachograph", "/?database=tachograph"), content=query, timeout=30
    )
    return {instance: (int(count), int(different), int(missing)) for instance, count, different, missing in rows.json()["data"]}  # fmt: skip


def ledger(data_dir: Path) -> Ledger:
    with opened_beside(spool_file(data_dir)) as beside:
        return read_ledger(beside).get("http", Ledger())


def assert_stored_once(addresses: Addresses, made: list[Sender], of: str) -> None:
    eventually(lambda: pending(addresses.data_dir) == 0)
    found, told = stored(addresses), ledger(addresses.data_dir)
    assert told.adds_up
    assert told.stored == sum(count for count, _, _ in found.values()), f"{of}: the ledger says {told}"
    for sender in made:
        count, different, missing = found.get(sender.instance, (0, 0, 0))
        assert count == different, f"{of}: {count - different} executions of {sender.instance} are stored twice"
        assert missing >= sender.acknowledged, (
            f"{of}: {sender.instance} lost {missing}, acknowledged {sender.acknowledged}"
        )


def test_killed_at_any_instant_nothing_acknowledged_is_lost_or_stored_twice(tmp_path: Path) -> None:
    seed = int(os.environ.get("TACHOGRAPH_TEST_SEED", time.time_ns() % 10**9))
    print(f"TACHOGRAPH_TEST_SEED={seed}")  # noqa: T201
    dice = random.Random(seed)
    addresses = free_addresses(tmp_path)
    with senders() as made:
        for kill in range(KILLS):
            with started(addresses, "collect", ready_url=ready_url(addresses)) as process:
                if kill:
                    assert_stored_once(addresses, made, f"after kill {kill} of seed {seed}")
                with sending(made, addresses.otlp_http) as acknowledged:
                    before = acknowledged()
                    eventually(lambda before=before: acknowledged() > before)  # type: ignore[misc]
                    time.sleep(dice.uniform(0, LONGEST_LIFE_S))
                    process.kill()
                    process.wait(60)
        with started(addresses, "collect", ready_url=ready_url(addresses)):
            assert_stored_once(addresses, made, f"after the last kill of seed {seed}")
        assert all(sender.acknowledged for sender in made)


def test_ended_under_load_it_is_gone_in_ten_seconds_and_nothing_is_lost(tmp_path: Path) -> None:
    addresses = free_addresses(tmp_path)
    with senders() as made:
        with (
            started(addresses, "collect", ready_url=ready_url(addresses)) as process,
            sending(made, addresses.otlp_http) as acknowledged,
        ):
            eventually(lambda: acknowledged() > 500)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        with started(addresses, "collect", ready_url=ready_url(addresses)):
            assert_stored_once(addresses, made, "after SIGTERM")

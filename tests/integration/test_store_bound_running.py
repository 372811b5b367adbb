"""The store's bound and pinned retention in a running collector: never a silent stop."""

import json
from itertools import islice
from pathlib import Path

import httpx
import pytest

from queries.rows import store_id_at
from tests.benchmarks.ingest_load import requests_of
from tests.fixtures.doors import PROTOBUF
from tests.fixtures.running import Addresses, free_addresses, started, tachograph
from tests.fixtures.senders import eventually


def test_a_store_with_no_room_says_so_everywhere_and_turns_senders_away_for_now(tmp_path: Path) -> None:
    addresses = free_addresses(tmp_path)
    own = f"http://127.0.0.1:{addresses.otlp_http_port}"
    settings = ("--store-bytes-max", "10", "--retention", "graph_executions=7")
    with started(addresses, "collect", *settings, ready_url=f"{own}/healthz"):
        eventually(lambda: httpx.get(f"{own}/state").json()["store"]["is_full"])
        (body,) = islice(requests_of("full:1", 5), 1)
        refused = httpx.post(addresses.otlp_http, content=body, headers=PROTOBUF)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert b"TACHOGRAPH_STORE_BYTES_MAX" in refused.content
        ready = httpx.get(f"{own}/readyz")
        assert ready.status_code == 503
        reasons = ready.json()["reasons"]
        assert (list(reasons), "(TACHOGRAPH_STORE_BYTES_MAX)" in reasons["store"]) == (["store"], True)
        assert "tachograph_store_limit_bytes 10.0" in httpx.get(f"{own}/metrics").text
        # Pinned at the start though nothing is ever stored, and not to be changed while it is.
        eventually(lambda: days_of_executions(addresses) == 7)
        doctor = json.loads(tachograph(addresses, "doctor", "--json").stdout)
        eventually(lambda: httpx.get(f"{own}/state").json()["store_id"] == store_id_at(addresses.clickhouse_url))
        found = {check["name"]: (check["verdict"], check["finding"]) for check in doctor["checks"]}
        assert found["retention"] == ("ok", "as the schema and TACHOGRAPH_RETENTION have it")
        assert found["store's size"][1].endswith(" of 10 bytes")
        sent = tachograph(addresses, "simulate", "cell", "--send", "--seconds", "1")
        assert "raise the bound that it names, or free space on its disk, then send again" in sent.stderr
        below = tachograph(addresses, "retention", "set", "graph_executions", "-1")
        assert (below.returncode, "equal to 1" in below.stderr) == (2, True)
        change = tachograph(addresses, "retention", "set", "graph_executions", "9")
        assert (change.returncode, change.stdout) == (1, "")
        assert "is kept for 7 days by the collector's TACHOGRAPH_RETENTION: change it there" in change.stderr


def days_of_executions(of: Addresses) -> int:
    tables = json.loads(tachograph(of, "retention", "--json").stdout)
    return next(int(table["days"]) for table in tables if table["table"] == "graph_executions")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["--retention", "nothing=3"], "no table 'nothing' keeps rows for a time"),
        (["--clickhouse-url", "http://127.0.0.1:9/x", "--store-bytes-max", "5"], "bounds the embedded store"),
        (["--clickhouse-cluster", "fleet"], "set TACHOGRAPH_CLICKHOUSE_URL"),
    ],
    ids=["no such table", "a bound for a server", "a cluster without a server"],
)
def test_a_setting_that_has_no_effect_is_refused(tmp_path: Path, settings: list[str], said: str) -> None:
    done = tachograph(free_addresses(tmp_path), "collect", *settings)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr

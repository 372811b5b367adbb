"""Alerts ask a collector about itself: of another store's, nothing is believed."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client
from starlette.applications import Starlette

from collector.http_server import HttpServer
from collector.ports import bind, port_of
from collector.receivers.health import HealthReceiver
from collector.repeated_look import LookState
from collector.spool.database import spool_file
from collector.spool.spool import Spool
from collector.store.migrations import id_of
from collector.telemetry.health import Health
from collector.telemetry.metrics import CollectorMetrics
from collector.telemetry.state import state_of
from queries.alerts.lint import WATCHED_COLUMNS
from queries.alerts.loading import load_rules
from queries.alerts.sources import StoredSource
from queries.errors import OtherStoreError

BACKLOG, SILENT, FAILING = (load_rules().named(name) for name in ("CollectorBacklog", "EngineSilent", "LookFailing"))
NOW = datetime(2026, 11, 2, tzinfo=UTC)


class Telling:
    """A collector that tells its state, of the store that it says."""

    def __init__(self, spool: Spool, store_id: str) -> None:
        self.store_id = store_id
        listening = bind("127.0.0.1", 0, "no setting")
        self.url = f"http://127.0.0.1:{port_of(listening)}"
        self.looks: dict[str, LookState] = {}
        health = HealthReceiver(
            Health(), CollectorMetrics(), lambda: state_of(spool, store_id=self.store_id, looks=self.looks)
        )
        self.server = HttpServer(Starlette(routes=health.routes), listening, "telling")


@pytest.fixture
def telling(clickhouse: Client, tmp_path: Path) -> Iterator[Telling]:
    with closing(Spool(spool_file(tmp_path))) as spool:
        told = Telling(spool, id_of(clickhouse))
        told.server.start()
        yield told
        told.server.stop()


def test_of_looks_that_fail_the_one_that_has_longest_is_told(telling: Telling, clickhouse_url: str) -> None:
    source = StoredSource(clickhouse_url, telling.url)

    def told() -> list[object]:
        (row,) = source.rows(FAILING, NOW, is_now=True)
        return [row[name] for name in ("look_failing_s", "look", "look_failure", "look_error")]

    assert told() == [0.0, "", "", ""]
    telling.looks["judging"] = LookState("", 3.0)
    assert told() == [0.0, "", "", ""]
    telling.looks["judging"] = LookState("cells not judged", 400.0, 40, 40, 395.0, "no such column")
    telling.looks["store bound"] = LookState("the store's size is not known", 30.0, 1, 1, 5.0, "away")
    assert told() == [395.0, "judging", "cells not judged", "no such column"]
    assert not set(WATCHED_COLUMNS["collector"]) - source.rows(FAILING, NOW, is_now=True)[0].keys()


def test_what_another_stores_collector_tells_is_not_believed(telling: Telling, clickhouse_url: str) -> None:
    source = StoredSource(clickhouse_url, telling.url)
    own = telling.store_id
    for store_id in (own, "", own):
        telling.store_id = store_id
        (row,) = source.rows(BACKLOG, NOW, is_now=True)
        assert row["oldest_waiting_s"] == 0
        assert source.rows(SILENT, NOW, is_now=True) == []
    telling.store_id = "2026-11-01 00:00:00.000"
    for rule in (BACKLOG, SILENT):
        with pytest.raises(OtherStoreError) as told:
            source.rows(rule, NOW, is_now=True)
        assert str(told.value) == (
            f"the collector at {telling.url} does not store in {clickhouse_url}:"
            " name the one that does by TACHOGRAPH_ROWS_URL"
        )
    assert source.rows(SILENT, NOW, is_now=False) == [], "the past asks no collector"


def test_of_a_store_that_is_away_its_collector_is_believed(telling: Telling) -> None:
    assert StoredSource("http://127.0.0.1:9/tachograph", telling.url).rows(BACKLOG, NOW, is_now=True)

"""The Health page in every state, over a real collector and without one; and its sentences."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
import streamlit as st

from collector.spool.database import spool_file
from collector.spool.spool import Spool, SpoolLimits
from collector.telemetry.metrics import CollectorMetrics
from collector.writer import Writer
from dashboards.charts.ingest import ingest
from dashboards.links import HEALTH_PAGE
from dashboards.reading import collector
from dashboards.reading.alerts import silence_conditions
from dashboards.reading.collector import Collected, Sample
from dashboards.reading.store import COLLECTOR_VARIABLE, RULES_VARIABLE
from dashboards.words import health
from queries.errors import RefusedError, UnreachableError
from tests.fixtures.doors import PROTOBUF, serving
from tests.fixtures.fake_store import FakeStore, request
from tests.fixtures.otlp_files import requests_in
from tests.fixtures.pages import NOWHERE, checked, page_opened, said
from tests.fixtures.running import Addresses, running_collector

OWN_RULE = """
alert: EngineSilent
query: silent_engines
when: [{column: silent_s, above: 600}]
severity: warning
identity: [service_instance_id]
annotations: {summary: "{service_instance_id} is silent"}
runbook: Look.
"""
NO_COLLECTOR = "http://127.0.0.1:9"
NOW = datetime(2026, 11, 1, tzinfo=UTC)

CELLS = ("r014",)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, cases: Path) -> Iterator[Addresses]:
    """A collector that took a cell and refused what is none."""
    with running_collector(tmp_path_factory.mktemp("collector")) as addresses:
        for body in requests_in(cases / "cells" / "r008.otlp.gz"):
            send(addresses, body)
        yield addresses


def send(addresses: Addresses, body: bytes) -> None:
    headers = {"content-type": "application/x-protobuf"}
    httpx.post(addresses.otlp_http, content=body, headers=headers, timeout=60).raise_for_status()


def base(addresses: Addresses) -> str:
    return f"http://127.0.0.1:{addresses.otlp_http_port}"


def state(**changes: Any) -> dict[str, Any]:
    spool = {
        "pending_requests": 0, "pending_bytes": 0, "oldest_unix_ms": None, "set_aside_requests": 0,
        "set_aside_bytes": 0, "bytes_max": 10 * 1024**3,
    }  # fmt: skip
    return {
        "version": "1", "now_unix_ms": 1_000_000, "ledger": {"http": {"received": 10, "stored": 8, "refused": 2}},
        "spool": spool | changes, "disk": {"free_bytes": 5e9, "total_bytes": 9e9, "free_bytes_min": 1024**3},
    }  # fmt: skip


class TestPage:
    def test_a_collector_that_stores(self, running: Addresses, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(COLLECTOR_VARIABLE, base(running))
        app = page_opened(HEALTH_PAGE, running.clickhouse_url, monkeypatch)
        text = said(app)
        assert "What comes in is stored" in text
        assert [metric.label for metric in app.metric][:2] == ["Coming in, spans/s", "Stored, executions"]
        assert "| http |" in text
        assert not app.error

    def test_senders_that_are_turned_away_are_told_of_with_what_to_do(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Of a collector whose disk has less free than is to be left free."""
        limits = SpoolLimits(free_bytes_min=2**62)
        with closing(Spool(spool_file(tmp_path), limits)) as spool:
            metrics = CollectorMetrics()
            with serving(Writer(spool, FakeStore, metrics), metrics) as doors:
                assert doors.post(request(0), **PROTOBUF).status_code == 429
                monkeypatch.setenv(COLLECTOR_VARIABLE, doors.traces_url.removesuffix("/v1/traces"))
                app = page_opened(HEALTH_PAGE, labelled_url, monkeypatch)
        (told,) = app.error
        assert told.value.startswith("**The collector turns senders away:** the disk of its spool has ")
        assert "lower TACHOGRAPH_DISK_FREE_BYTES_MIN." in told.value
        assert "**What was taken in is stored;** nothing waiting." in app.warning[0].value
        assert "does not store" not in said(app)

    def test_without_a_collector_it_shows_what_clickhouse_knows(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(COLLECTOR_VARIABLE, NO_COLLECTOR)
        app = page_opened(HEALTH_PAGE, labelled_url, monkeypatch)
        assert "no collector answers at http://127.0.0.1:9" in app.warning[0].value.replace("\\", "")
        assert "What ClickHouse knows stands below" in said(app)
        assert "No engine fell silent" in said(app)
        assert "Clocks that are off" in said(app)
        assert not app.metric

    def test_neither_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(COLLECTOR_VARIABLE, NO_COLLECTOR)
        app = page_opened(HEALTH_PAGE, NOWHERE, monkeypatch)
        assert "no ClickHouse answers" in app.error[0].value
        assert "no collector answers" in app.warning[0].value

    def test_the_collector_went_away(self, running: Addresses, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(COLLECTOR_VARIABLE, base(running))
        app = page_opened(HEALTH_PAGE, running.clickhouse_url, monkeypatch)
        monkeypatch.setattr(collector, "read", gone)
        st.cache_data.clear()
        checked(app.run())
        assert "gone. Its figures are of " in app.warning[0].value
        assert "What comes in is stored" not in said(app)
        assert re.search(r"is not known:\*\* \d+ s ago what came in was stored, and .* waited", said(app))
        assert {metric.label: metric.value for metric in app.metric}["Coming in, spans/s"] == "?"
        assert "Engines that fell silent" not in said(app)


def gone(url: str) -> Collected:
    raise UnreachableError(f"{url} is gone")


class TestReading:
    def test_figures_and_samples(self, running: Addresses) -> None:
        read = collector.read(base(running))
        assert read.known
        assert not read.troubles
        assert read.samples[-1].received > 0
        assert collector.read(base(running)).samples[-2] == read.samples[-1]

    def test_what_was_refused_by_reason(self, running: Addresses) -> None:
        assert httpx.get(f"{base(running)}/state", headers={"Host": "evil.example"}).status_code == 403
        refusals = collector.read(base(running)).refusals
        assert ("http", "foreign_host") in set(zip(refusals.door, refusals.reason, strict=True))

    def test_another_page_is_no_collector(self, labelled_url: str) -> None:
        with pytest.raises((RefusedError, UnreachableError), match=r"is it of this version|is no collector"):
            collector.read(labelled_url.rpartition("/")[0])

    @pytest.mark.parametrize("url", ["", "ftp://x", "127.0.0.1:4318"])
    def test_no_url(self, url: str) -> None:
        with pytest.raises(UnreachableError, match="TACHOGRAPH_COLLECTOR_URL"):
            collector.read(url)

    def test_a_password_goes_into_the_header_and_is_not_shown(self) -> None:
        shown, headers = collector.anonymous("http://reader:se%3Acret@host:4318/")
        assert shown == "http://host:4318"
        assert headers["Authorization"] == "Basic cmVhZGVyOnNlOmNyZXQ="

    def test_the_wrong_password_is_one_line(self) -> None:
        assert "TACHOGRAPH_SQL_PASSWORD" in str(collector.refused("http://host", 401))


class TestWords:
    def test_a_collector_that_does_not_store_says_why(self) -> None:
        told = health.health_sentence(
            Collected(state(set_aside_requests=2), {"clickhouse": "it is away"}, at=NOW), pd.DataFrame()
        )
        assert told.startswith("**The collector does not store.** clickhouse: it is away.")
        assert "2 requests set aside" in told

    @pytest.mark.parametrize(
        ("reason", "told"),
        [
            ("", ""),
            ("disk_full", "the disk of its spool is full (4.7 GiB free of 8.4 GiB). Free some of it."),
            ("disk_free", "4.7 GiB free, and 1.0 GiB are left free. Free some of it, or lower TACHOGRAPH_DISK_"),
            ("spool_bytes", "(10.0 GiB). See to it that what waits is stored, or raise TACHOGRAPH_SPOOL_BYTES_MAX."),
            ("unheard_of", r"unheard\_of. `tachograph doctor` says more."),
        ],
    )
    def test_why_senders_are_turned_away(self, reason: str, told: str) -> None:
        reasons = {"spool": "it is full"} if reason else {}
        here = Collected(state(turned_away_for=reason), reasons, at=NOW)
        assert told in health.turned_away_sentence(here)
        assert bool(health.turned_away_sentence(here)) == bool(reason)
        both = replace(here, troubles=reasons | {"clickhouse": "it is away"})
        assert "**The collector does not store.** clickhouse: it is away." in health.health_sentence(
            both, pd.DataFrame()
        )
        away = replace(here, problem="no collector answers")
        assert health.turned_away_sentence(away) == ""
        assert ("turned senders away" in health.health_sentence(away, pd.DataFrame())) == bool(reason)

    def test_a_collector_that_is_away_is_told_of_in_the_past(self) -> None:
        seen = datetime.now(UTC) - timedelta(minutes=2)
        samples = tuple(Sample(seen + timedelta(seconds=one), 50 * one, 50 * one) for one in range(3))
        away = Collected(state(pending_requests=1), {}, samples=samples, at=seen, problem="no collector answers")
        told = health.health_sentence(away, pd.DataFrame())
        assert "2 min 0 s ago what came in was stored, and 1 request waited" in told
        assert "fell silent." in told
        assert health.figures(away)[0].value == "?"
        failing = replace(away, troubles={"clickhouse": "it is away"})
        assert "ago it did not store (clickhouse: it is away)" in health.health_sentence(failing, pd.DataFrame())

    @pytest.mark.parametrize(
        ("changes", "is_told"),
        [
            ({}, True),
            ({"silent_s": 59.0}, False),
            ({"is_replaced": True}, False),
            ({"heard_for_s": 10.0}, False),
        ],
    )
    def test_an_engine_is_silent_where_the_alert_says_so(self, changes: dict[str, Any], is_told: bool) -> None:
        row = {"service_instance_id": "i", "silent_s": 90.0, "is_replaced": False, "heard_for_s": 600.0}
        assert len(health.silent_only(pd.DataFrame([row | changes]), silence_conditions())) == is_told

    def test_the_users_own_rule_says_when(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """And the shipped one where theirs cannot be read, or asks something else."""
        shipped = silence_conditions()
        for name, text, expected in (
            ("own", OWN_RULE, 600.0),
            ("other", OWN_RULE.replace("silent_engines", "skewed_clocks").replace("silent_s", "off_s"), 60.0),
            ("broken", "alert: EngineSilent", 60.0),
        ):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "silent.yaml").write_text(text)
            monkeypatch.setenv(RULES_VARIABLE, str(folder))
            assert silence_conditions()[0].above == expected
        monkeypatch.setenv(RULES_VARIABLE, str(tmp_path / "nowhere"))
        assert silence_conditions() == shipped

    def test_what_waits_may_be_a_silent_engines(self) -> None:
        engines = pd.DataFrame([{"silent_s": 90.0, "is_replaced": False, "heard_for_s": 600.0}])
        behind = health.behind_s(Collected(state(oldest_unix_ms=1_000_000 - 40_000), at=NOW))
        assert behind == 40.0
        assert health.silent_only(engines, silence_conditions(), behind).empty
        assert health.behind_s(Collected()) == 0.0

    def test_what_waits(self) -> None:
        waiting = state(pending_requests=3, pending_bytes=2048, oldest_unix_ms=1_000_000 - 65_000)
        figures = {one.name: one for one in health.figures(Collected(waiting, at=NOW))}
        assert figures["Waiting"].value == "2.0 KiB"
        assert figures["Waiting"].meaning == "3 requests, 2.0 KiB of 10.0 GiB; the oldest for 1 min 5 s"
        assert figures["Refused, spans"].value == "2"
        assert figures["Coming in, spans/s"].value == "…"

    def test_rates_are_between_readings(self) -> None:
        samples = tuple(Sample(NOW + timedelta(seconds=2 * one), 100 * one, 90 * one) for one in range(4))
        assert health.rate_text(samples) == "50"
        rates = health.ingest_rates(samples)
        assert set(rates[rates["of"] == "executions stored"].per_s) == {45.0}
        (data,) = ingest(rates).to_dict()["datasets"].values()
        assert len(data) == 6

    def test_a_spool_made_anew_is_no_negative_rate(self) -> None:
        samples = (Sample(NOW, 100, 100), Sample(NOW + timedelta(seconds=2), 10, 10))
        assert health.rate_text(samples) == "0"
        assert (health.ingest_rates(samples).per_s >= 0).all()

    @pytest.mark.parametrize(
        ("size", "text"), [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (200 * 1024**2, "200 MiB")]
    )
    def test_sizes(self, size: int, text: str) -> None:
        assert health.bytes_text(size) == text

    @pytest.mark.parametrize(
        ("doors", "lines"),
        [
            (("", ""), ["| Refused | Reason | Count |", "| spans | a | 2 |", "| spans | b | 1 |"]),
            (
                ("", "http"),
                ["| Refused | Door | Reason | Count |", "| spans | any | a | 2 |", "| spans | http | b | 1 |"],
            ),
        ],
    )
    def test_doors_of_refusals_where_any_is_named(self, doors: tuple[str, str], lines: list[str]) -> None:
        refusals = pd.DataFrame({"what": "spans", "door": doors, "reason": ["a", "b"], "count": [2, 1]})
        head, _, *rows = health.refusals_table(refusals).splitlines()
        assert [head, *rows] == lines

    def test_a_clock_that_is_years_behind_is_told_beside_others(self) -> None:
        """Nothing of it is in the last day, by its own clock."""
        known = pd.DataFrame(
            {"host_name": ["a", "b"], "clock": ["ahead", "in step"], "off_s": [-61.5, 0.0],
             "off_since": pd.Series([pd.Timestamp(NOW), pd.NaT])}
        )  # fmt: skip
        steady = pd.DataFrame(
            {"host_name": ["a", "b", "1970"], "clock": ["ahead", "behind or late", "behind or late"],
             "clock_off_s": [60.0, 4.0, 1.7e9], "arrival_delay_min_s": [0.0] * 3}
        )  # fmt: skip
        for skew, hosts in ((known, ["a", "1970"]), (known[1:], ["a", "1970"]), (pd.DataFrame(), ["a", "1970"])):
            told = health.hosts_off(skew, steady)
            assert list(told.host_name) == hosts
            assert "| 1970 | behind or late | 1,700,000,000.0 |  |" in health.clocks_table(told, UTC)
        assert list(health.hosts_off(known, steady[:2]).host_name) == ["a"]

    def test_tables_of_what_clickhouse_knows(self) -> None:
        silent = pd.DataFrame(
            {"service_instance_id": ["a|b"], "host_name": [""], "engine_package": ["p"], "silent_s": [90.0],
             "silent_since": [pd.Timestamp(NOW)], "executions": [1200]}
        )  # fmt: skip
        assert r"a\|b" in health.silent_table(silent, UTC)
        assert "1 min 30 s" in health.silent_table(silent, UTC)
        skew = pd.DataFrame(
            {"host_name": ["h"], "clock": ["ahead"], "off_s": [-61.5], "off_since": [pd.Timestamp(NOW)]}
        )
        assert "| h | ahead | 61.5 |" in health.clocks_table(health.hosts_off(skew, pd.DataFrame()), UTC)
        gaps = pd.DataFrame(
            {"gap_started_at": [pd.Timestamp(NOW)], "host_name": ["h"], "service_instance_id": ["i"],
             "executions_missing": [4], "gap_s": [0.123]}
        )  # fmt: skip
        assert "| 4 | 0.12 |" in health.losses_table(gaps, UTC)

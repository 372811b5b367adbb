"""The Alerts page in every state, over what an evaluator leaves; without a browser."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client
from streamlit.testing.v1 import AppTest

from dashboards.links import ALERTS_PAGE
from dashboards.reading import alerts
from dashboards.reading.alerts import Alert, Standings
from dashboards.reading.store import ALERTMANAGER_VARIABLE, DATA_DIR_VARIABLE
from dashboards.words.alerts import FINDING_MIN_REM, address, alerts_sentence, alerts_table, no_changes_sentence
from dashboards.words.markdown import one_line, prose
from queries.alerts.delivery.silences import OwnSilences, new_silence
from queries.alerts.states import Standing, State
from tests.browser.labelled_cells import STUCK_CELL, STUCK_INSTANCE, labelled_store
from tests.fixtures.alert_state import HOST, entry, left_behind, store_change
from tests.fixtures.pages import NOWHERE, checked, page_opened, said


@pytest.fixture(scope="module")
def labelled_url(store: Client, data_dir: Path, cases: Path) -> Iterator[str]:
    """A store with a history of alerts."""
    with labelled_store(store, data_dir, cases, ("r014",)) as url:
        store_change(store, "StuckInPlain", "firing", "pending")
        store_change(store, "CollectorBacklog", "resolved", "firing", cell="")
        yield url


def opened(url: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch, **parameters: str) -> AppTest:
    monkeypatch.setenv(DATA_DIR_VARIABLE, str(data_dir))
    return page_opened(ALERTS_PAGE, url, monkeypatch, **parameters)


class TestPage:
    def test_firing_pending_and_ended(self, labelled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        left_behind(
            tmp_path,
            entry("StuckInPlain", State.FIRING),
            entry("EngineSilent", State.NO_DATA, was=State.FIRING, severity="warning"),
            entry("ClockSkew", State.PENDING),
            entry("HostBound", State.RESOLVED),
        )
        app = opened(labelled_url, tmp_path, monkeypatch)
        assert "**2 alerts firing**, 1 of them critical, 1 of them without data now, 1 pending." in app.warning[0].value
        assert [one.value for one in app.subheader] == [
            "Firing", "Pending, or without data", "Ended in the last minutes", "History",
        ]  # fmt: skip
        assert f"[StuckInPlain](./cell?engine={STUCK_INSTANCE}&cell={STUCK_CELL})" in said(app)
        assert [one.label for one in app.expander] == [
            "What to do about StuckInPlain", "What to do about EngineSilent",
        ]  # fmt: skip

    def test_a_silenced_alert_stands_apart(
        self, labelled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left_behind(tmp_path, entry("StuckInPlain", State.FIRING))
        now = datetime.now(UTC)
        OwnSilences(tmp_path / "alerts" / "silences").create(
            new_silence([f"host_name={HOST}"], "1h", "we know", "ada", now), now
        )
        app = opened(labelled_url, tmp_path, monkeypatch)
        assert "**Nothing fires**, 1 silenced." in app.success[0].value
        assert "Silences in force" in [one.value for one in app.subheader]
        assert "we know" in said(app)

    def test_nothing_fires(self, labelled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        left_behind(tmp_path)
        assert opened(labelled_url, tmp_path, monkeypatch).success[0].value == "**Nothing fires**."

    def test_an_evaluator_that_stopped_is_told(
        self, labelled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left_behind(tmp_path, ago_s=600)
        assert "nobody is woken now" in opened(labelled_url, tmp_path, monkeypatch).error[0].value

    def test_no_evaluator_ever_ran(self, labelled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened(labelled_url, tmp_path, monkeypatch)
        assert "No evaluator of alerts ran" in app.info[0].value
        assert f"cell?engine={STUCK_INSTANCE}&cell={STUCK_CELL}" in said(app)

    def test_history_and_its_filters(self, labelled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = said(opened(labelled_url, tmp_path, monkeypatch, since="7 d", alert="CollectorBacklog"))
        assert re.search(r"\| CollectorBacklog \| <span[^|]*</span> \| resolved \(was firing\) \|", text)
        assert "StuckInPlain" not in text
        other = said(opened(labelled_url, tmp_path, monkeypatch, alert_host="nobody"))
        assert "No alert changed its state in the last 24 hours, of those that match host nobody." in other

    def test_clickhouse_is_away_and_alerts_are_told_all_the_same(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left_behind(tmp_path, entry("AlertsBlind", State.FIRING))
        app = opened(NOWHERE, tmp_path, monkeypatch)
        assert "1 alert firing" in app.warning[0].value
        assert "no ClickHouse answers" in app.error[0].value

    def test_a_file_that_is_none(self, labelled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "alerts").mkdir()
        (tmp_path / "alerts" / "alerts.sqlite").write_text("no database at all, and long enough not to be empty")
        assert "cannot be read" in opened(labelled_url, tmp_path, monkeypatch).error[0].value

    def test_an_alertmanager_that_is_away_shows_the_last_known(
        self, labelled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left_behind(tmp_path, entry("StuckInPlain", State.FIRING))
        monkeypatch.setenv(ALERTMANAGER_VARIABLE, "http://127.0.0.1:9")
        app = opened(labelled_url, tmp_path, monkeypatch)
        assert "127.0.0.1:9" in app.error[0].value.replace("\\", "")
        monkeypatch.setenv(ALERTMANAGER_VARIABLE, "")
        st.cache_data.clear()
        assert "1 alert firing" in checked(app.run()).warning[0].value


class TestWords:
    def test_a_summary_stays_in_its_cell_of_the_table(self) -> None:
        told = alerts_table([Alert(entry("A", State.FIRING), ())], UTC).splitlines()
        assert len(told) == 3
        assert r"92% \| of its time" in told[2]

    @pytest.mark.parametrize(
        ("link", "leads_to"),
        [("cell?engine=a&cell=b", "./cell?engine=a&cell=b"), ("?host=a", "./?host=a"), ("/", "./")],
    )
    def test_links_are_relative_to_the_root(self, link: str, leads_to: str) -> None:
        assert address(link) == leads_to

    def test_the_worst_first(self) -> None:
        found = [Alert(entry("B", State.FIRING, severity="warning"), ()), Alert(entry("A", State.FIRING), ())]
        assert [one.entry.rule for one in sorted(found, key=alerts.order)] == ["A", "B"]

    def test_two_of_one_rule_and_host_are_told_apart(self) -> None:
        """By their engines, which are named where a rule has but one alert on a host too: which of eight is it?"""
        one = entry("A", State.FIRING)
        others = [
            replace(
                one,
                identity=tuple(sorted({**one.labels, "service_instance_id": name}.items())),
                about={**one.about, "service_instance_id": name},
            )
            for name in ("engine-old", f"{HOST}:engine-new")
        ]
        alone = entry("B", State.FIRING)
        told = alerts_table([Alert(each, ()) for each in (*others, alone)], UTC).splitlines()
        assert ["engine-old" in line for line in told[2:]] == [True, False, False]
        assert [">engine-new<" in line for line in told[2:]] == [False, True, False]
        assert [">…5bde263<" in line or ">…75bde263<" in line for line in told[2:]] == [False, False, True]
        assert told[2].count("|") == told[4].count("|")
        of_a_host = replace(alone, identity=(("alertname", "B"), ("host_name", HOST)), about={"host_name": HOST})
        assert "Engine" not in alerts_table([Alert(of_a_host, ())], UTC)

    def test_how_long_it_has_been_clear(self) -> None:
        firing = replace(entry("A", State.FIRING), standing=Standing(State.FIRING, clear_s=139.4))
        told = alerts_table([Alert(firing, ())], UTC)
        assert "| firing (clear for 139 s) |" in told
        assert rf">last\: {HOST} sits in plain decode" in told

    def test_what_fires_now_is_not_of_the_past(self) -> None:
        assert "last" not in alerts_table([Alert(entry("A", State.FIRING), ())], UTC)

    def test_a_finding_keeps_its_lines_and_its_times_are_the_viewers(self) -> None:
        finding = (
            "Cell c1, as of 2026-01-02 23:04:05 UTC:\n- inflation since 2026-13-99 00:00:00 UTC:\n  Execution 1 | <b>."
        )
        told = entry("A", State.FIRING)
        told = replace(told, annotations={**told.annotations, "finding": finding})
        row = alerts_table([Alert(told, ())], timezone(timedelta(hours=2))).splitlines()[2]
        lines = (
            r"Cell c1, as of 2026-01-03 01\:04\:05\:<br>"
            r"inflation since 2026-13-99 00\:00\:00 UTC\:<br>Execution 1 \| \<b\>."
        )
        assert f" | {prose(lines, FINDING_MIN_REM)} | " in row

    def test_what_no_change_matches(self) -> None:
        assert no_changes_sentence("today") == "No alert changed its state today."
        told = no_changes_sentence("today", alert="<b>", host="a")
        assert told == r"No alert changed its state today, of those that match alert \<b\>, host a."

    def test_nothing(self) -> None:
        assert alerts_sentence(Standings()) == "**Nothing fires**."


def test_a_long_host_name_stays_on_its_line() -> None:
    long = "ip-10-0-0-17.eu-central-1.compute.internal|<b>"
    shown = one_line(long)
    assert ">ip-10-0-0-17.….internal" in shown
    assert 'title="ip-10-0-0-17.eu-central-1.compute.internal&#124;&lt;b&gt;"' in shown
    assert "|" not in shown.replace("\\|", "")
    assert "title" not in one_line("gpu-node-024")
    assert one_line("") == ""


def test_a_long_name_in_a_summary_leaves_the_finding_its_room() -> None:
    host = f"gpu-node-{'x' * 90}-17"
    uuid = "73a6748e-5b83-4a73-9ce5-2c0275bde263"
    said = f"{host}: {uuid} sits in plain decode"
    one = entry("A", State.FIRING)
    head, _, row = alerts_table(
        [Alert(replace(one, annotations={"summary": said, "finding": "f"}), ())], UTC
    ).splitlines()
    shown = rf"gpu-node-xxxxxxxxx…{'x' * 15}-17\: {uuid} sits in plain decode"
    assert f"| {prose(shown)} | {prose('f', FINDING_MIN_REM)} |" in row
    assert head.startswith("| Alert | What | Finding |"), "a telephone shows no more"
    assert "white-space: normal" in prose("f"), "or a sentence reaches beyond a telephone"

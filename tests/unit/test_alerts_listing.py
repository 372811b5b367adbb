"""What `tachograph alerts list` says of silences."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from queries.alerts.delivery.silences import OwnSilences, new_silence
from queries.alerts.states import State
from queries.commands.alerts.listing import alerts_table, silences_in_force
from tests.fixtures.alert_state import HOST, entry

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def settings(data_dir: Path, urls: str = "") -> Any:
    return SimpleNamespace(data_dir=data_dir, alertmanager_urls=urls)


def kept(data_dir: Path) -> None:
    """One silence of the rule `Known`, for an hour from `NOW` on."""
    silence = new_silence(["alertname=Known"], "1h", "we know", "ada", NOW)
    OwnSilences(data_dir / "alerts" / "silences").create(silence, NOW)


def test_an_alert_that_is_silenced_is_listed_so(tmp_path: Path) -> None:
    kept(tmp_path)
    silences, trouble = silences_in_force(settings(tmp_path), NOW + timedelta(minutes=1))
    assert trouble == ""
    table = alerts_table([entry("Known", State.FIRING), entry("New", State.FIRING)], silences)
    assert list(table.columns[0].cells) == ["firing (silenced)", "firing"]


def test_two_of_one_rule_and_host_are_told_apart() -> None:
    one = entry("A", State.FIRING)
    labels = one.labels | {"service_instance_id": "engine-new"}
    again = replace(one, identity=tuple(sorted(labels.items())))
    summaries = [str(text) for text in alerts_table([one, again, entry("B", State.FIRING)]).columns[3].cells]
    assert ["[engine-new]" in text.replace("\\", "") for text in summaries] == [False, True, False]
    assert ["sits in plain" in text for text in summaries] == [True, True, True]
    assert [text.startswith(HOST) for text in summaries] == [False, False, True]


def test_a_silence_that_ended_silences_nothing(tmp_path: Path) -> None:
    kept(tmp_path)
    assert silences_in_force(settings(tmp_path), NOW + timedelta(hours=2)) == ([], "")


def test_alerts_are_listed_while_alertmanager_is_away(tmp_path: Path) -> None:
    kept(tmp_path)
    silences, trouble = silences_in_force(settings(tmp_path, "http://127.0.0.1:9"), NOW + timedelta(minutes=1))
    assert len(silences) == 1
    assert "127.0.0.1:9" in trouble

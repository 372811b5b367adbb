"""What `tachograph alerts list` says, of silences too, and where it looks."""

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from queries.alerts.book import Entry
from queries.alerts.delivery.silences import OwnSilences, new_silence
from queries.alerts.errors import NotEvaluatedError, UnknownRuleError
from queries.alerts.loading import load_rules
from queries.alerts.memory import Memory
from queries.alerts.states import Standing, State
from queries.commands.alerts.listing import alerts_table, list_alerts, silences_in_force
from queries.commands.alerts.place import place_of, told_data_dir
from tachograph import Settings
from tests.browser.labelled_cells import STUCK_INSTANCE
from tests.fixtures.alert_state import HOST, entry, left_behind

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


def test_the_engine_is_named_where_the_summary_does_not() -> None:
    one = entry("A", State.FIRING)
    labels = one.labels | {"service_instance_id": "engine-new"}
    again = replace(one, identity=tuple(sorted(labels.items())))
    summaries = [str(text) for text in alerts_table([one, again, entry("B", State.FIRING)]).columns[3].cells]
    assert ["[engine-new]" in text.replace("\\", "") for text in summaries] == [False, True, False]
    assert [f"[{STUCK_INSTANCE}]" in text.replace("\\", "") for text in summaries] == [True, False, True]
    says = replace(one, annotations={"summary": f"{HOST} ({STUCK_INSTANCE}) sits in plain decode"})
    (said,) = alerts_table([says]).columns[3].cells
    assert str(said).startswith(f"{HOST} ({STUCK_INSTANCE}) sits")
    assert ["sits in plain" in text for text in summaries] == [True, True, True]


def test_what_a_clear_alert_said_is_told_as_what_it_said_last() -> None:
    firing = entry("A", State.FIRING)
    clear = replace(firing, standing=Standing(State.FIRING, clear_s=143.4))
    ((told,), (untouched,)) = (list(alerts_table([one]).columns[3].cells) for one in (clear, firing))
    assert f"(clear for 143 s) last: {HOST} sits in plain decode" in str(told)
    assert f" {HOST} sits in plain decode" in str(untouched)
    assert "clear" not in str(untouched)


def test_of_many_the_worst_and_longest_is_listed_first_and_all_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    listed = [
        began(entry("AlertA", State.FIRING, host="warned", severity="warning"), 9),
        began(entry("AlertA", State.FIRING, host="late"), 1),
        began(entry("AlertB", State.FIRING, host="early"), 5),
        entry("AlertB", State.PENDING, host="waits"),
    ]
    left_behind(tmp_path, *listed)
    here = Settings(_env_file=None, data_dir=tmp_path)
    list_alerts(here)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "4 alerts: 3 firing (AlertA 2, AlertB 1), 1 pending (AlertB 1)"
    assert hosts_in(lines) == ["early", "late", "warned", "waits"]
    list_alerts(here, rule="AlertB", state="firing")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 alert: 1 firing (AlertB 1)"
    assert hosts_in(lines) == ["early"]
    list_alerts(here, state="pending", as_json=True)
    assert [one["rule"] for one in json.loads(capsys.readouterr().out)["alerts"]] == ["AlertB"]
    list_alerts(here, state="gone")
    assert "no alert is of that rule and state" in capsys.readouterr().out
    with pytest.raises(UnknownRuleError, match="no rule 'AlertC'"):
        list_alerts(here, rule="AlertC")


def began(one: Entry, ago_min: float) -> Entry:
    return replace(one, starts_at=NOW - timedelta(minutes=ago_min))


def hosts_in(lines: list[str]) -> list[str]:
    """The hosts of the alerts listed, in order."""
    found = [re.search(r"(\w+) sits in", line) for line in lines]
    return [one[1] for one in found if one]


def test_a_silence_that_ended_silences_nothing(tmp_path: Path) -> None:
    kept(tmp_path)
    assert silences_in_force(settings(tmp_path), NOW + timedelta(hours=2)) == ([], "")


def test_alerts_are_listed_while_alertmanager_is_away(tmp_path: Path) -> None:
    kept(tmp_path)
    silences, trouble = silences_in_force(settings(tmp_path, "http://127.0.0.1:9"), NOW + timedelta(minutes=1))
    assert len(silences) == 1
    assert "127.0.0.1:9" in trouble


def test_where_no_evaluator_ever_ran_every_rule_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = Settings(_env_file=None, data_dir=tmp_path / "no")
    with pytest.raises(NotEvaluatedError, match=f"ever ran on {tmp_path / 'no'}: name the --data-dir") as refused:
        list_alerts(nowhere, as_json=False)
    assert refused.value.exit_code == 1
    said = capsys.readouterr().out
    assert "inactive" not in said
    assert [line.split()[-1] for line in said.splitlines()[1:]] == ["unknown"] * len(load_rules().rules)
    with pytest.raises(NotEvaluatedError):
        list_alerts(nowhere, as_json=True)
    assert capsys.readouterr().out == ""


def test_before_the_first_look_every_rule_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Memory(tmp_path / "alerts").close()
    with pytest.raises(NotEvaluatedError, match=f"on {tmp_path} has not looked yet"):
        list_alerts(Settings(_env_file=None, data_dir=tmp_path), as_json=False)
    assert "unknown" in capsys.readouterr().out


def test_a_named_data_directory_is_asked_for_nowhere(tmp_path: Path) -> None:
    left_behind(tmp_path)
    with telling(tmp_path / "told") as url:
        left_behind(tmp_path / "told")
        assert place_of(looking(tmp_path, tmp_path, url)).data_dir == tmp_path


@pytest.mark.parametrize(
    ("told_ago_s", "default_ago_s", "found"),
    [(1.0, None, "told"), (None, 1.0, "default"), (1.0, 9.0, "told"), (9.0, 1.0, "default")],
)
def test_of_the_collectors_and_the_default_directory_the_one_looked_at_last(
    tmp_path: Path, told_ago_s: float | None, default_ago_s: float | None, found: str
) -> None:
    for name, ago_s in (("told", told_ago_s), ("default", default_ago_s)):
        if ago_s is not None:
            left_behind(tmp_path / name, ago_s=ago_s)
    with telling(tmp_path / "told") as url:
        assert place_of(looking(tmp_path / "default", None, url)).data_dir == tmp_path / found


def test_an_evaluator_that_has_just_begun_goes_before_one_of_long_ago(tmp_path: Path) -> None:
    left_behind(tmp_path / "default", ago_s=900.0)
    Memory(tmp_path / "told" / "alerts").close()
    with telling(tmp_path / "told") as url:
        assert place_of(looking(tmp_path / "default", None, url)).data_dir == tmp_path / "told"


def test_both_are_named_where_nobody_evaluates(tmp_path: Path) -> None:
    with telling(tmp_path / "told") as url, pytest.raises(NotEvaluatedError) as nowhere:
        place_of(looking(tmp_path / "default", None, url))
    assert f"ever ran on {tmp_path / 'told'} or {tmp_path / 'default'}: " in str(nowhere.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "", "no url", "http://[::1"])
def test_without_a_collector_the_default_directory_is_looked_at(tmp_path: Path, url: str) -> None:
    left_behind(tmp_path)
    assert place_of(looking(tmp_path, None, url)).data_dir == tmp_path


def test_a_collector_elsewhere_does_not_tell_its_directory() -> None:
    with telling(None) as url:
        assert told_data_dir(url) is None


def test_settings_know_whether_the_data_directory_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACHOGRAPH_DATA_DIR", raising=False)
    assert Settings(_env_file=None).for_readers().named_data_dir is None
    assert Settings(_env_file=None, data_dir=tmp_path).for_readers().named_data_dir == tmp_path
    monkeypatch.setenv("TACHOGRAPH_DATA_DIR", str(tmp_path))
    assert Settings(_env_file=None).for_readers().named_data_dir == tmp_path


def looking(data_dir: Path, named: Path | None, url: str) -> Any:
    reader = url.replace("http://", "http://grafana:secret@", 1)
    return SimpleNamespace(data_dir=data_dir, named_data_dir=named, collector_url=reader, alertmanager_urls="")


@contextmanager
def telling(data_dir: Path | None) -> Iterator[str]:
    """A collector that tells a reader where its data lies, or does not; by URL."""
    told = {"version": "1"} | ({"data_dir": str(data_dir)} if data_dir else {})
    asked_as = "Basic " + base64.b64encode(b"grafana:secret").decode()

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_right = self.path == "/state" and self.headers["Authorization"] == asked_as
            self.send_response(200 if is_right else 404)
            self.end_headers()
            self.wfile.write(json.dumps(told).encode())

        def log_message(self, *_: object) -> None:
            """It is no news."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

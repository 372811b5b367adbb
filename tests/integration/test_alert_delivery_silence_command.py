"""`tachograph alerts silence`: where a silence is kept, and what it does there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pydantic import SecretStr
from typer.testing import CliRunner

from queries.alerts.delivery.receivers import receivers_of
from queries.alerts.errors import NotEvaluatedError
from queries.alerts.memory import Memory
from queries.alerts.states import State
from queries.errors import CallError
from tachograph import Settings, application
from tests.fixtures.alert_receivers import alert, receiving
from tests.fixtures.alert_state import entry, left_behind
from tests.fixtures.alertmanagers import needs_alertmanager, quick_config, running_alertmanager

STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Command:
    """The command with its settings in the environment."""

    def __init__(self, directory: Path) -> None:
        self.environment: dict[str, str | None] = {"TACHOGRAPH_DATA_DIR": str(directory)}

    def __call__(self, *arguments: str) -> str:
        """What it prints.

        Raises:
            CallError: as the command does.
        """
        return self._ran(*arguments).stdout

    def said(self, *arguments: str) -> str:
        """What it says on standard error."""
        return self._ran(*arguments).stderr

    def _ran(self, *arguments: str) -> Result:
        ran = CliRunner().invoke(application(), ["alerts", "silence", *arguments], env=self.environment)
        if isinstance(ran.exception, Exception):
            raise ran.exception
        assert ran.exit_code == 0, ran.output
        return ran

    def listed(self, *arguments: str) -> list[dict[str, Any]]:
        told = json.loads(self("list", "--json", *arguments))
        assert isinstance(told, list)
        return told


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    left_behind(tmp_path)
    return Command(tmp_path)


def test_a_silence_of_our_own_silences_the_webhook_until_it_is_expired(command: Command, tmp_path: Path) -> None:
    made, where = command(
        "create", "alertname=StuckInPlain", "--for", "1h", "--comment", "known", "--author", "me"
    ).split()
    assert where == "tachograph"
    with receiving() as server:
        settings = Settings(data_dir=tmp_path, alert_webhooks=SecretStr(f"{server.url}/hook"))
        (receiver,) = receivers_of(settings)
        receiver.send([alert()])
        assert server.received("/hook") == []
        assert command("expire", made[:8]) == f"{made} tachograph ended\n"
        receiver.send([alert()])
        assert len(server.received("/hook")) == 1
    (listed,) = command.listed("--all")
    assert command.listed() == []
    assert (listed["id"], listed["state"], listed["comment"], listed["createdBy"]) == (made, "expired", "known", "me")


def test_the_list_is_for_the_eye_too(command: Command) -> None:
    command("create", "host_name=~gpu-1.", "--comment", "known [1]")
    shown = command("list")
    assert "gpu-1." in shown
    assert "[1]" in shown


def test_names_stay_whole_and_only_comments_fold(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    why = "the night shift moves " + "very " * 40 + "slowly"
    matchers = ["alertname=EstimateInflation", "service_instance_id=demo-fooled-1796007449-9391"]
    command("create", *matchers, "--comment", why, "--author", "somebody-with-a-long-name")
    for columns, is_terminal in (("80", False), ("80", True), ("300", True)):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv("FORCE_COLOR", "1") if is_terminal else monkeypatch.delenv("FORCE_COLOR", raising=False)
        shown = command("list")
        for name in (*matchers, "somebody-with-a-long-name"):
            assert name in shown, (columns, is_terminal)
        assert (why in shown) is not is_terminal
        if is_terminal:
            assert max(len(STYLE.sub("", line)) for line in shown.splitlines()) <= int(columns)


def test_a_silence_that_matches_no_alert_of_now_is_warned_of(command: Command, tmp_path: Path) -> None:
    assert "matches no alert of now" in command.said("create", "alertname=StuckInPlain", "--comment", "x")
    left_behind(tmp_path, entry("StuckInPlain", State.FIRING), entry("ClockSkew", State.RESOLVED))
    assert command.said("create", "alertname=StuckInPlain", "--comment", "x") == ""
    assert "matches no alert of now" in command.said("create", "alertname=ClockSkew", "--comment", "x")


CREATING = ("create", "alertname=StuckInPlain", "--comment", "x")


def test_whether_it_matches_is_unknown_before_the_first_look(command: Command, tmp_path: Path) -> None:
    command.environment["TACHOGRAPH_DATA_DIR"] = str(tmp_path / "new")
    Memory(tmp_path / "new" / "alerts").close()
    assert "whether it matches an alert is unknown" in command.said(*CREATING)


@pytest.mark.parametrize("arguments", [CREATING, ("list",), ("list", "--json"), ("expire", "5fee4f72")])
def test_where_no_evaluator_ever_ran_nothing_is_silenced_and_nothing_written(
    command: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    command.environment["TACHOGRAPH_DATA_DIR"] = str(tmp_path / "elsewhere")
    with pytest.raises(NotEvaluatedError, match=f"ever ran on {tmp_path / 'elsewhere'}: name the --data-dir"):
        command(*arguments)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "alertname", "--comment", "x"), "is no matcher"),
        (("create", "alertname=StuckInPlan", "--comment", "x"), r"called 'StuckInPlan' .*did you mean StuckInPlain\?"),
        (("create", "alertname=~Stock.*", "--comment", "x"), "no rule is called"),
        (("create", "alertname!=EngineSilence", "host_name=a", "--comment", "x"), r"did you mean EngineSilent\?"),
        (("create", "a=b", "--for", "later", "--comment", "x"), "is no duration"),
        (("expire", "none"), "no silence that still runs"),
    ],
)
def test_wrong_calls_are_said(command: Command, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CallError, match=said):
        command(*arguments)


@needs_alertmanager
def test_a_silence_is_kept_wherever_it_is_needed(command: Command, tmp_path: Path) -> None:
    with receiving() as server, running_alertmanager(tmp_path / "alertmanager", quick_config(server.url)) as running:
        command.environment["TACHOGRAPH_ALERTMANAGER_URLS"] = running.url
        made, where = command("create", "alertname=StuckInPlain", "--comment", "known").split()
        assert where == "alertmanager"
        (kept,) = running.ask("/api/v2/silences")
        assert (kept["id"], kept["status"]["state"]) == (made, "active")
        command.environment["TACHOGRAPH_ALERT_WEBHOOKS"] = f"{server.url}/hook"
        command("create", "alertname=ClockSkew", "--comment", "known")
        assert sorted(one["where"] for one in command.listed()) == ["alertmanager", "alertmanager", "tachograph"]
        command("expire", *(one["id"] for one in command.listed()))
        assert command.listed() == []
        assert {one["status"]["state"] for one in running.ask("/api/v2/silences")} == {"expired"}


@needs_alertmanager
def test_alertmanagers_silences_need_no_data_directory(command: Command, tmp_path: Path) -> None:
    with receiving() as server, running_alertmanager(tmp_path / "alertmanager", quick_config(server.url)) as running:
        command.environment |= {
            "TACHOGRAPH_ALERTMANAGER_URLS": running.url,
            "TACHOGRAPH_DATA_DIR": str(tmp_path / "no"),
        }
        assert "warning: no evaluator of alerts ever ran" in command.said(*CREATING)
        (made,) = command.listed()
        assert command("expire", made["id"]) == f"{made['id']} alertmanager ended\n"
        command.environment["TACHOGRAPH_ALERT_WEBHOOKS"] = f"{server.url}/hook"
        with pytest.raises(NotEvaluatedError):
            command(*CREATING)
        assert command.listed() == [], "made everywhere or nowhere"

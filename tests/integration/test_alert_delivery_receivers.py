"""Receivers as the settings name them, each against a real server: webhooks, Apprise, secrets, TLS."""

import logging
import re
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
from pydantic import SecretStr
from typer.testing import CliRunner

from engine_hooks.extras import install_command
from queries.alerts.delivery.attempts import again
from queries.alerts.delivery.endpoint import endpoint
from queries.alerts.delivery.errors import ReceiverAwayError, ReceiverRefusedError
from queries.alerts.delivery.receivers import receivers_of, states_of
from queries.alerts.notifying import Receiver
from queries.errors import CallError
from tachograph import Settings, application
from tests.fixtures.alert_receivers import WITHIN_S, ReceivingServer, alert, minutes, receiving
from tests.fixtures.alert_state import left_behind
from tests.fixtures.alertmanagers import needs_alertmanager, quick_config, running_alertmanager


@pytest.fixture
def server() -> Iterator[ReceivingServer]:
    with receiving() as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ALERTMANAGER_URLS", "ALERT_WEBHOOKS", "ALERT_NOTIFY", "ALERT_REPEAT_S", "TLS_CA"):
        monkeypatch.delenv(f"TACHOGRAPH_{name}", raising=False)


def named(directory: Path, **settings: Any) -> list[Receiver]:
    """The receivers of these settings."""
    return receivers_of(Settings(data_dir=directory, **settings))


def from_environment(monkeypatch: pytest.MonkeyPatch, directory: Path, **values: str) -> list[Receiver]:
    """The receivers of what stands in the environment."""
    for name, value in values.items():
        monkeypatch.setenv(f"TACHOGRAPH_{name}", value)
    return named(directory)


def test_without_settings_nobody_is_told(tmp_path: Path) -> None:
    assert named(tmp_path) == []


def test_webhooks_of_the_settings_are_posted_to(
    server: ReceivingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = server.url.removeprefix("http://")
    both = f"http://me:secret@{host}/one?key=hidden, {server.url}/two,{server.url}/two"
    receivers = from_environment(monkeypatch, tmp_path, ALERT_WEBHOOKS=both)
    assert len(receivers) == len({receiver.name for receiver in receivers}) == 2
    for receiver in receivers:
        receiver.send([alert()])
        assert receiver.name.startswith(f"webhook {server.url} ")
    assert [one.path for one in server.requests] == ["/one?key=hidden", "/two"]
    assert server.requests[0].headers["Authorization"] == "Basic bWU6c2VjcmV0"
    assert "Authorization" not in server.requests[1].headers
    assert server.requests[0].body["externalURL"] == Settings().dashboards_url
    written = "".join(file.read_text() for file in tmp_path.rglob("*.json"))
    assert "webhook" in written
    assert not {"secret", "hidden", "/one"} & set(re.findall(r"\w+|/\w+", written))


def test_apprise_urls_of_the_settings_are_told(
    server: ReceivingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = f"json://me:secret@127.0.0.1:{server.port}/notify"
    (receiver,) = from_environment(monkeypatch, tmp_path, ALERT_NOTIFY=url)
    receiver.send([alert(summary="stuck")])
    receiver.send([alert(summary="stuck"), alert(engine="engine-b", summary="too")])
    first, second = server.received("/notify")
    assert (first["title"], first["type"]) == ("FIRING: StuckInPlain on host-of-engine-a", "failure")
    assert first["message"].startswith("stuck\nsince 2026-11-01 12:00:00 UTC")
    assert second["message"].startswith("too")
    over = alert(since=datetime.now(UTC) - minutes(2), ended=datetime.now(UTC) - minutes(1))
    receiver.send([over])
    assert server.received("/notify")[2]["type"] == "success"


def test_the_setting_of_repeats_repeats(
    server: ReceivingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from queries.alerts.delivery import people

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + minutes(3)

    told = {}
    for repeat_s in (120, 240):
        url = f"{server.url}/{repeat_s}"
        named(tmp_path, alert_webhooks=SecretStr(url), alert_repeat_s=repeat_s)[0].send([alert()])
        with monkeypatch.context() as patched:
            patched.setattr(people, "datetime", Later)
            named(tmp_path, alert_webhooks=SecretStr(url), alert_repeat_s=repeat_s)[0].send([alert()])
        told[repeat_s] = len(server.received(f"/{repeat_s}"))
    assert told == {120: 2, 240: 1}


def test_how_receivers_do_is_known_to_other_processes(server: ReceivingServer, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, alert_webhooks=SecretStr(f"{server.url}/hook"))
    (receiver,) = receivers_of(settings)
    assert [(state.name, state.state) for state in states_of(settings)] == [(receiver.name, "unused")]
    server.answers["/hook"] = 400
    with pytest.raises(ReceiverRefusedError):
        receiver.send([alert()])
    (failing,) = states_of(settings)
    assert (failing.state, failing.error) == ("failing", f"{server.url} answers 400 (so it is)")
    (after_restart,) = receivers_of(settings)
    assert states_of(settings) == [failing]
    server.answers.clear()
    after_restart.send([alert()])
    (delivering,) = states_of(settings)
    assert (delivering.state, delivering.error) == ("delivering", "")
    left_behind(tmp_path)
    shown = CliRunner().invoke(application(), ["alerts", "list"], env={"TACHOGRAPH_DATA_DIR": str(tmp_path)}).output
    assert f"delivering to {receiver.name} since" in shown
    named(tmp_path, alert_webhooks=SecretStr(f"{server.url}/another"))
    assert [state.state for state in states_of(settings)] == ["unused"]


@pytest.mark.parametrize("url", ["slack://secret", "nonsense://secret@host", "secret"])
def test_apprise_urls_that_are_none_are_said_without_their_secrets(url: str, tmp_path: Path) -> None:
    with pytest.raises(CallError, match="TACHOGRAPH_ALERT_NOTIFY: Apprise cannot use") as wrong:
        named(tmp_path, alert_notify=SecretStr(url))
    assert "secret" not in str(wrong.value)


def test_without_its_extra_apprise_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(CallError, match=re.escape(install_command("notify"))):
        named(tmp_path, alert_notify=SecretStr("json://host"))


def test_a_service_that_does_not_take_messages_is_said_without_its_secrets(
    server: ReceivingServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answers["/secret"] = 500
    (receiver,) = named(tmp_path, alert_notify=SecretStr(f"json://me:secret@127.0.0.1:{server.port}/secret"))
    receiver._receiver._retrying = again(2, 0)  # type: ignore[attr-defined]
    with pytest.raises(ReceiverAwayError, match=r"notify JSON .* did not take the message") as away:
        receiver.send([alert()])
    assert "secret" not in str(away.value)
    assert not [record for record in caplog.records if record.name.startswith("apprise")]


def test_answers_that_say_to_come_back_are_tried_again_and_others_are_not(server: ReceivingServer) -> None:
    server.answers = {"/busy": 429, "/away": 503, "/wrong": 400, "/locked": 401, "/moved": 302}
    asked = endpoint(server.url.replace("//", "//me:secret@"))
    for path, kind, said in (
        ("/busy", ReceiverAwayError, r"answers 429 \(so it is\)"),
        ("/away", ReceiverAwayError, r"answers 503 \(so it is\)"),
        ("/wrong", ReceiverRefusedError, r"answers 400 \(so it is\)"),
        ("/locked", ReceiverRefusedError, "needs other credentials"),
        ("/moved", ReceiverRefusedError, "has moved"),
    ):
        with pytest.raises(kind, match=said) as wrong:
            asked.ask("POST", path, {})
        assert "secret" not in str(wrong.value)
    assert server.requests == []


def test_a_server_that_does_not_answer_is_given_up(server: ReceivingServer) -> None:
    server.held["/"] = threading.Event()
    began = time.monotonic()
    with pytest.raises(ReceiverAwayError, match="timed out"):
        endpoint(server.url, timeout_s=0.2).ask("POST", "/", {})
    assert time.monotonic() - began < WITHIN_S / 2


def test_https_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    with receiving() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
        asked = endpoint(f"https://127.0.0.1:{server.port}")
        with pytest.raises(ReceiverAwayError, match="certificate verify failed"):
            asked.ask("POST", "/", {})
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("TACHOGRAPH_TLS_CA", str(tmp_path / "ca.pem"))
        asked.ask("POST", "/", {"a": 1})
        assert server.received("/") == [{"a": 1}]
        monkeypatch.setenv("TACHOGRAPH_TLS_CA", __file__)
        with pytest.raises(ReceiverRefusedError, match="holds no certificates"):
            asked.ask("POST", "/", {})


@needs_alertmanager
def test_every_alertmanager_of_the_settings_is_sent_to_with_its_password(
    server: ReceivingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # "secret", by bcrypt.
    guarded = "basic_auth_users:\n  me: $2b$04$JGp5efxpL.f9TuBMUJLVeOqkfBF/L3Y9pweRK.Vao25Ihz8wEYegC\n"
    config = quick_config(server.url)
    with (
        running_alertmanager(tmp_path / "a", config) as first,
        running_alertmanager(tmp_path / "b", config, guarded) as second,
    ):
        secret = second.url.replace("//", "//me:secret@")
        receivers = from_environment(monkeypatch, tmp_path, ALERTMANAGER_URLS=f"{first.url},{secret}")
        assert [receiver.name for receiver in receivers] == [f"alertmanager {first.url}", f"alertmanager {second.url}"]
        for receiver in receivers:
            receiver.send([alert(since=datetime.now(UTC))])
        assert len(first.alerts()) == 1
        assert len(endpoint(secret).ask("GET", "/api/v2/alerts")) > 10
        (wrong,) = named(tmp_path, alertmanager_urls=second.url.replace("//", "//me:wrong@"))
        with pytest.raises(ReceiverRefusedError, match="needs other credentials"):
            wrong.send([alert(since=datetime.now(UTC))])

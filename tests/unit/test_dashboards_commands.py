"""`tachograph dashboard`: a taken port is one clear line, and Streamlit gets what it needs."""

import itertools
import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from dashboards import commands
from dashboards.errors import PortTakenError
from tests.fixtures.ports import free_port


def settings(**values: Any) -> Any:
    nothing = {
        "dashboard_address": "127.0.0.1", "dashboard_port": 8501, "dashboard_reachable_as": "",
        "dashboard_password": SecretStr(""), "dashboard_password_file": None, "dashboard_oidc_file": None,
        "data_dir": Path("/data"), "alertmanager_urls": "", "alert_rules": Path("rules"),
        "clickhouse_url": "http://example:8123/db", "collector_url": "http://example:4318",
    }  # fmt: skip
    return SimpleNamespace(**nothing | values)


def test_a_taken_port_is_one_line_that_names_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"port {port} .*TACHOGRAPH_DASHBOARD_PORT") as refused:
            commands.check_port("127.0.0.1", port)
    assert "\n" not in str(refused.value)


def test_streamlit_is_called_quietly_and_for_loopback_only() -> None:
    command = commands.streamlit_command(settings())
    assert str(commands.SERVED_APP) in command
    assert "--server.allowedHosts=localhost" in command
    assert "--server.allowedHosts=*" not in command
    pairs = dict(itertools.pairwise(command))
    assert pairs["--browser.gatherUsageStats"] == "false"
    assert pairs["--server.fileWatcherType"] == "none"
    assert pairs["--server.address"] == "127.0.0.1"


def test_another_address_takes_any_host_name() -> None:
    assert commands.allowed_hosts("192.0.2.7") == ["*"]


def test_the_pages_are_told_where_clickhouse_is(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda _path, command, environment: called.append((command, environment)))
    port = free_port()
    commands.dashboard(settings(dashboard_port=port))
    ((command, environment),) = called
    assert environment["TACHOGRAPH_CLICKHOUSE_URL"] == "http://example:8123/db"
    assert environment["TACHOGRAPH_COLLECTOR_URL"] == "http://example:4318"
    assert environment["TACHOGRAPH_ALERT_RULES"] == str(Path("rules").absolute())
    assert str(port) in command

"""The dashboards' command."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from dashboards.errors import PortTakenError
from dashboards.store import URL_VARIABLE

APP = Path(__file__).parent / "app" / "main.py"
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
PORT_VARIABLE = "TACHOGRAPH_DASHBOARD_PORT"


class DashboardSettings(Protocol):
    """What the dashboards need to know."""

    @property
    def clickhouse_url(self) -> str:
        """The ClickHouse that the pages read."""
        ...

    @property
    def dashboard_address(self) -> str:
        """Address that the dashboards listen on."""
        ...

    @property
    def dashboard_port(self) -> int:
        """Port that the dashboards listen on."""
        ...


def dashboard(settings: DashboardSettings) -> None:
    """Serve the dashboards until Ctrl-C: live pages that flag the cells stuck in plain decode."""
    check_port(settings.dashboard_address, settings.dashboard_port)
    environment = os.environ | {URL_VARIABLE: settings.clickhouse_url}
    command = streamlit_command(settings.dashboard_address, settings.dashboard_port)
    if os.name == "posix":
        # Streamlit takes this process's place: signals reach it directly, and nothing is left behind.
        os.execve(command[0], command, environment)  # noqa: S606
    else:
        subprocess.run(command, env=environment, check=False)  # noqa: S603


def check_port(address: str, port: int) -> None:
    """Refuse a port that something else listens on, before anything has started.

    Raises:
        PortTakenError: names the port and its setting.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise PortTakenError(
                f"dashboards: port {port} on {address}: {error.strerror}; set {PORT_VARIABLE}"
            ) from error


def streamlit_command(address: str, port: int) -> list[str]:
    """How Streamlit is called: no telemetry, no watching of files, no tools that a reader does not need."""
    options = {
        "server.address": address,
        "server.port": port,
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "server.showEmailPrompt": "false",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "client.showErrorLinks": "false",
        "runner.magicEnabled": "false",
        "global.developmentMode": "false",
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    hosts = [f"--server.allowedHosts={host}" for host in allowed_hosts(address)]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *flags, *hosts]


def allowed_hosts(address: str) -> list[str]:
    """Host names that a browser may reach the pages by: on loopback, loopback's own, against DNS rebinding."""
    return sorted(LOOPBACK) if address in LOOPBACK else ["*"]

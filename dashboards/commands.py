"""The dashboards' command."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import typer

from dashboards.access import OIDC_FILE, PASSWORD, PASSWORD_FILE, AccessSettings, check_access
from dashboards.errors import PortTakenError
from dashboards.reading.store import (
    ALERTMANAGER_VARIABLE,
    COLLECTOR_VARIABLE,
    DATA_DIR_VARIABLE,
    RULES_VARIABLE,
    URL_VARIABLE,
)
from engine_hooks.commands.registering import TakesSettings

PANEL = "Looking"
APP = Path(__file__).parent / "app" / "main.py"
SERVED_APP = APP.with_name("served.py")
GUARDED_APP = APP.with_name("guarded.py")
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
PORT_VARIABLE = "TACHOGRAPH_DASHBOARD_PORT"


class DashboardSettings(AccessSettings, Protocol):
    """What the dashboards need to know."""

    @property
    def clickhouse_url(self) -> str:
        """The ClickHouse that the pages read."""
        ...

    @property
    def collector_url(self) -> str:
        """The collector that the Health page asks."""
        ...

    @property
    def data_dir(self) -> Path:
        """Where the evaluator of alerts keeps their state."""
        ...

    @property
    def alert_rules(self) -> Path | None:
        """The user's own alert rules; None is none."""
        ...

    @property
    def alertmanager_urls(self) -> str:
        """The Alertmanagers that keep silences."""
        ...

    @property
    def dashboard_reachable_as(self) -> str:
        """Name that browsers reach the dashboards by; '' is this machine's."""
        ...

    @property
    def dashboard_port(self) -> int:
        """Port that the dashboards listen on."""
        ...


def register(app: typer.Typer, takes_settings: TakesSettings) -> None:
    """Add this room's command."""
    app.command(rich_help_panel=PANEL)(takes_settings(dashboard))


def dashboard(settings: DashboardSettings) -> None:
    """Serve the dashboards until Ctrl-C: live pages that flag the cells stuck in plain decode."""
    check_access(settings)
    check_port(settings.dashboard_address, settings.dashboard_port)
    environment = os.environ | environment_of(settings)
    command = streamlit_command(settings)
    if os.name == "posix":
        # Streamlit takes this process's place: signals reach it directly, and nothing is left behind.
        os.execve(command[0], command, environment)  # noqa: S606
    else:
        subprocess.run(command, env=environment, check=False)  # noqa: S603


def environment_of(settings: DashboardSettings) -> dict[str, str]:
    """What the pages find in their environment. Of the settings of access only those that are set."""
    access = {
        PASSWORD: settings.dashboard_password.get_secret_value(),
        PASSWORD_FILE: str(settings.dashboard_password_file or ""),
        OIDC_FILE: str(settings.dashboard_oidc_file or ""),
    }
    return {
        URL_VARIABLE: settings.clickhouse_url,
        COLLECTOR_VARIABLE: settings.collector_url,
        DATA_DIR_VARIABLE: str(settings.data_dir),
        ALERTMANAGER_VARIABLE: settings.alertmanager_urls,
        RULES_VARIABLE: str(settings.alert_rules.absolute()) if settings.alert_rules else "",
        **access,
    }


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


def streamlit_command(settings: DashboardSettings) -> list[str]:
    """How Streamlit is called: no telemetry, no watching of files, no tools that a reader does not need."""
    options = {
        "server.address": settings.dashboard_address,
        "server.port": settings.dashboard_port,
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "server.showEmailPrompt": "false",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "client.showErrorLinks": "false",
        "runner.magicEnabled": "false",
        "global.developmentMode": "false",
        # How long a reading stands in while a newer one is fetched, in times of its freshness: else a page whose
        # questions take long would blank every few seconds.
        "runner.cacheBackgroundRefreshTTLMultiplier": "20",
        # Red means a flag here, and nothing else.
        "theme.light.primaryColor": "#1f66a3",
        "theme.dark.primaryColor": "#6bb1e3",
    }
    if settings.dashboard_reachable_as:
        # Else Streamlit takes a page of that name for a foreign one, and shuts its connection.
        options["browser.serverAddress"] = settings.dashboard_reachable_as
    if settings.dashboard_oidc_file:
        options["secrets.files"] = str(settings.dashboard_oidc_file)
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    hosts = allowed_hosts(settings.dashboard_address, settings.dashboard_reachable_as)
    has_password = settings.dashboard_password.get_secret_value() or settings.dashboard_password_file
    app = str(GUARDED_APP if has_password else SERVED_APP)
    return [sys.executable, "-m", "streamlit", "run", app, *flags, *(f"--server.allowedHosts={host}" for host in hosts)]


def allowed_hosts(address: str, reachable_as: str = "") -> list[str]:
    """Host names that a browser may reach the pages by: where they are known, no others, against DNS rebinding."""
    if address not in LOOPBACK and not reachable_as:
        return ["*"]
    return sorted(LOOPBACK | ({reachable_as} if reachable_as else set()))

"""The command line: settings, and the wiring of the rooms. What a command does stands in its room's `commands`,
and `registering` there names them all.

Exit codes: README.md has the table. A room's own codes are named in its exceptions.
"""

import functools
import inspect
import logging
import os
import shlex
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Container
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from engine_hooks.extras import install_command

# Ctrl-C while the libraries are loaded, which takes a second, is no fault: the process ends by it, and says nothing.
sys.excepthook = lambda kind, *rest: None if kind is KeyboardInterrupt else sys.__excepthook__(kind, *rest)

try:
    import typer
    from pydantic import AliasChoices, ByteSize, Field, PrivateAttr, SecretStr, ValidationError
    from pydantic_settings import SettingsConfigDict
    from rich.console import Console

    from collector.access.behind import settings_behind
    from collector.access.presenting import scheme_of, sending_variables, with_credentials
    from collector.access.settings import access_of, ingest_tokens_of
    from collector.commands import registering as collecting
    from collector.data_dir import check_data_dir
    from collector.errors import CollectorError
    from collector.ports import PortTakenError, bind, host_and_port
    from collector.sampling.settings import SamplingSettings
    from collector.stop_signals import STOP_SIGNALS, StopSignals
    from collector.store.settings import StoreSettings, shown_default
    from collector.supervision import Part, Supervisor, alone_in
    from collector.telemetry.log_format import LogFormat
    from collector.unknown_settings import SAID, warnings_of
    from dashboards import commands as looking
    from dashboards.access import check_access
    from dashboards.errors import DashboardsError
    from engine_hooks.commands import registering as engines
    from engine_hooks.commands import standard_output
    from engine_hooks.commands.usage import OneLineUsage
    from engine_hooks.errors import EngineHooksError
    from queries.client import shown
    from queries.commands import registering as asking
    from queries.errors import QueriesError
    from queries.runner import run
except ImportError as missing:
    sys.exit(f"tachograph: the command line needs the service extra ({missing}): {install_command('service')}")
except KeyboardInterrupt:  # The libraries take a second; Ctrl-C then is no fault.
    sys.exit(130)

ENVIRONMENT_PREFIX = "TACHOGRAPH_"
ENVIRONMENT_FILE = ".env"


class Settings(SamplingSettings, StoreSettings):
    """Settings of every command: flags, then `TACHOGRAPH_*` in the environment, then `.env`, then the defaults."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_file=ENVIRONMENT_FILE, env_ignore_empty=True, extra="ignore"
    )

    listen_address: str = Field("127.0.0.1", description="Address that the collector listens on.")
    reachable_as: str = Field(
        "", description="Name that clients reach it by, as its certificate says; empty is the address it listens on."
    )
    otlp_grpc_port: int = Field(4317, ge=1, le=65535, description="OTLP over gRPC.")
    otlp_http_port: int = Field(4318, ge=1, le=65535, description="OTLP over HTTP, /healthz, /readyz and /metrics.")
    clickhouse_port: int = Field(8123, ge=1, le=65535, description="The embedded ClickHouse over HTTP, read-only.")
    dashboard_port: int = Field(8501, ge=1, le=65535, description="The dashboards.")
    dashboard_address: str = Field(
        "127.0.0.1", description="Address that the dashboards listen on; off loopback they want a password or a log-in."
    )
    dashboard_reachable_as: str = Field(
        "", description="Name that browsers reach the dashboards by, as a reverse proxy's; empty is this machine's."
    )
    dashboard_password: SecretStr = Field(SecretStr(""), description="Password of the dashboards.")
    dashboard_password_file: Path | None = Field(None, description="A file with it; read when it changes.")
    dashboard_oidc_file: Path | None = Field(
        None, description="A file for logging in by OpenID Connect; docs/securing.md shows one."
    )
    collector_url: str = Field(
        "",
        repr=False,
        description="The collector that the Health page asks, and `alerts` for where its data lies, http://host:4318; "
        "empty is the one here.",
    )
    ingest_tokens: SecretStr = Field(SecretStr(""), description="Tokens that senders bear, separated by commas.")
    ingest_tokens_file: Path | None = Field(
        None, description="A file of such tokens, one a line; read when it changes."
    )
    sql_user: str = Field("default", description="The user who may read, by SQL and at /metrics.")
    sql_password: SecretStr = Field(SecretStr(""), description="That user's password.")
    sql_password_file: Path | None = Field(None, description="A file with that password; read when it changes.")
    tls_certificate: Path | None = Field(None, description="Certificate with its chain, PEM, for every door.")
    tls_key: Path | None = Field(None, description="The certificate's key, PEM, without a passphrase.")
    tls_ca: Path | None = Field(
        None, description="Certificates that commands trust when they connect, PEM; none is the system's."
    )
    request_bytes_max: ByteSize = Field(
        ByteSize(16 * 1024**2), ge=1024, description="Bytes of one OTLP request, decompressed."
    )
    request_spans_max: int = Field(100_000, ge=1, description="Spans of one OTLP request.")
    requests_at_once_max: int = Field(
        32, ge=1, description="OTLP requests in memory at a time, for gRPC and HTTP each; further ones wait."
    )
    log_format: LogFormat = Field(
        "auto", description="The collector's log: console, json, or auto: console on a terminal and json elsewhere."
    )
    otlp_endpoint: str = Field(
        "",
        validation_alias=AliasChoices("otlp_endpoint", "TACHOGRAPH_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        description="Where simulated and imported executions are sent; empty is the collector's gRPC port here.",
    )
    rows_url: str = Field(
        "", description="Where replays and other computed rows are sent; empty is the collector's HTTP port here."
    )
    alert_rules: Path | None = Field(None, description="Your directory of alert rules, beside the shipped ones.")
    alert_interval_s: float = Field(
        10.0, ge=1, le=3600, description="Seconds between two evaluations of the alert rules."
    )
    alertmanager_urls: str = Field(
        "",
        repr=False,
        description="Alertmanagers that alerts are sent to, https://user:password@host:9093, separated by commas.",
    )
    alert_webhooks: SecretStr = Field(
        SecretStr(""), description="URLs that alerts are posted to as Alertmanager would, separated by commas."
    )
    alert_notify: SecretStr = Field(
        SecretStr(""), description="Apprise URLs (Slack, email, …) that alerts are told to, separated by commas."
    )
    alert_repeat_s: int = Field(
        4 * 3600,
        ge=60,
        description="After so long, in s, webhooks and Apprise are told again of what still fires.",
    )

    _names_clickhouse: bool = PrivateAttr(default=False)

    @property
    def named_clickhouse_url(self) -> str:
        """ClickHouse's URL where somebody named it, '' where it was filled in."""
        return self.clickhouse_url if self._names_clickhouse else ""

    @property
    def named_data_dir(self) -> Path | None:
        """The data directory where somebody named it, None where it is the default."""
        return self.data_dir if "data_dir" in self.model_fields_set else None

    @property
    def dashboards_url(self) -> str:
        """Where the dashboards are reached from here."""
        return dashboard_url(self)

    @property
    def reachable_address(self) -> str:
        """Where what listens here is reached from here: loopback where it listens on every address."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        return self.reachable_as or everywhere.get(self.listen_address, self.listen_address)

    def own_url(self, port: int) -> str:
        """Where one of the collector's ports is reached from here."""
        return f"{scheme_of(self)}://{host_and_port(self.reachable_address, port)}"

    def for_readers(self) -> "Settings":
        """The same, with every URL filled in, for commands that talk to a running collector or store."""
        filled = self.model_copy(
            update={
                "clickhouse_url": with_credentials(
                    self.clickhouse_url or f"{self.own_url(self.clickhouse_port)}/tachograph",
                    self,
                    is_own=not self.clickhouse_url,
                ),
                "otlp_endpoint": self.otlp_endpoint or self.own_url(self.otlp_grpc_port),
                "rows_url": self.rows_url or self.own_url(self.otlp_http_port),
                "collector_url": with_credentials(
                    self.collector_url or self.own_url(self.otlp_http_port), self, is_own=not self.collector_url
                ),
            }
        )
        filled._names_clickhouse = bool(self.clickhouse_url)
        return filled


SIZES = "sizes look like 512MiB, 10GB or 1073741824"


def settings_from(flags: dict[str, Any]) -> Settings:
    """Settings with these flags on top.

    Raises:
        typer.Exit: code 2, after one line for each wrong value, naming the setting.
    """
    # It would say of .env in its own words what `warn_of_unknown` says.
    logging.getLogger("dotenv.main").setLevel(logging.ERROR)
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as wrong:
        for error in wrong.errors():
            name = str(error["loc"][0]).removeprefix(ENVIRONMENT_PREFIX).upper()
            wanted = (
                SIZES if error["type"].startswith("byte_size") else error["msg"].removeprefix("Value error, ").lower()
            )
            fail(f"{ENVIRONMENT_PREFIX}{name} is {error['input']!r}: {wanted}")
        raise typer.Exit(2) from wrong
    except UnicodeDecodeError as wrong:
        fail(f"the file .env here is not UTF-8 (byte {wrong.start}): save it as UTF-8")
        raise typer.Exit(2) from wrong


def warn_of_unknown() -> None:
    """Say on standard error which names and lines set nothing; once, not by each part of `tachograph up` again."""
    for line in warnings_of(os.environ, Path(ENVIRONMENT_FILE), Settings.model_fields):
        fail(f"warning: {line}")


def fail(line: str) -> None:
    """Say what is wrong, in one line, on standard error."""
    typer.echo(f"tachograph: {line}", err=True)


def settings_options(names: Container[str] = Settings.model_fields) -> list[inspect.Parameter]:
    """One flag for each of these settings that is no secret, its default and environment variable shown in the help.

    A flag would show a secret to everybody on the machine.
    """
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                (str if field.annotation is ByteSize else field.annotation) | None,  # type: ignore[operator]
                typer.Option(
                    flags_of(name, field.annotation),
                    help=f"{field.description} [{ENVIRONMENT_PREFIX}{name.upper()}]",
                    show_default=shown_default(field.default),
                    rich_help_panel="Settings (flag, environment or .env)",
                ),
            ],
        )
        for name, field in Settings.model_fields.items()
        if field.annotation is not SecretStr and name in names
    ]


def flags_of(name: str, kind: Any) -> str:
    """How typer is told of a setting's flag; what is true or false has one for each, and neither takes a value."""
    flag = name.replace("_", "-")
    return f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}"


def takes_settings(command: Callable[..., Any], *, reads: bool = True) -> Callable[..., Any]:
    """A typer command from a room's function: its `settings` parameter becomes one flag for each setting it uses.

    Args:
        command: A function whose first parameter is `settings`.
        reads: Whether it talks to a running store, so that it wants every URL filled in.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "settings"]
    options = settings_options(settings_behind(signature.parameters["settings"].annotation, filled=reads))

    @functools.wraps(command)
    def run(**arguments: Any) -> Any:
        flags = {option.name: arguments.pop(option.name) for option in options}
        settings = settings_from(flags)
        warn_of_unknown()
        if reads:
            os.environ.update({**sending_variables(settings), **os.environ})
        return command(settings.for_readers() if reads else settings, **arguments)

    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *options]}
    return run


def report_defect(defect: BaseException) -> None:
    """One line for a fault nobody foresaw; the traceback goes to a file that can be sent in."""
    with tempfile.NamedTemporaryFile("w", prefix="tachograph-", suffix=".txt", delete=False) as file:
        traceback.print_exception(defect, file=file)
    fail(
        f"unexpected {type(defect).__name__}: {defect}; this is a defect of Tachograph, its details are in {file.name}"
    )


def parts_of(settings: Settings) -> list[Part]:
    """What `tachograph up` runs, in the order of their starting: collector, dashboards, alerts, two engines to look at."""
    engine = ["simulate", "live", "--otlp-endpoint", settings.for_readers().otlp_endpoint]
    return [
        Part("collector", ["collect"], f"{settings.own_url(settings.otlp_http_port)}/readyz"),
        Part("dashboards", ["dashboard"], f"{dashboard_url(settings)}/_stcore/health"),
        Part("alerts", ["alerts", "run"]),
        Part("engine-fooled", [*engine, "--cost-model", "exposed_mean", "--host", "demo-fooled"]),
        Part("engine-corrected", [*engine, "--cost-model", "drained_share", "--host", "demo-corrected"]),
    ]


def dashboard_url(settings: Settings) -> str:
    """Where the dashboards are reached from here."""
    address = settings.dashboard_address
    return f"http://{host_and_port('127.0.0.1' if address == '0.0.0.0' else address, settings.dashboard_port)}"  # noqa: S104


def taken_ports(settings: Settings) -> list[str]:
    """One line for each port that cannot be listened on, naming its setting."""
    lines = []
    for name in ("otlp_grpc_port", "otlp_http_port", "clickhouse_port", "dashboard_port"):
        if name == "clickhouse_port" and settings.clickhouse_url:
            continue
        address = settings.dashboard_address if name == "dashboard_port" else settings.listen_address
        try:
            bind(address, getattr(settings, name), f"{ENVIRONMENT_PREFIX}{name.upper()}").close()
        except CollectorError as error:
            lines.append(str(error))
    return list(dict.fromkeys(lines))


def environment_of(settings: Settings) -> dict[str, str]:
    """What a part finds in its environment: every setting, secrets as they came, and what the engines present.

    And that what is unknown has been said: in a part's log it would look like the reason of its end.
    """
    values = settings.model_dump(exclude={"otlp_endpoint"}, exclude_none=True)  # the engines' flag
    set_here = {
        f"{ENVIRONMENT_PREFIX}{name.upper()}": str(value.get_secret_value() if isinstance(value, SecretStr) else value)
        for name, value in values.items()
    }
    return {**sending_variables(settings), **os.environ, **set_here, SAID: "1"}


def up(settings: Settings) -> None:
    """Run all of it until Ctrl-C: the collector, the dashboards, and two simulated engines to look at."""
    console = Console()
    access_of(settings).check_address(settings.listen_address)
    check_access(settings)
    if taken := taken_ports(settings):
        raise PortTakenError("; ".join(taken))
    check_data_dir(settings.data_dir)
    with alone_in(settings.data_dir), StopSignals([*STOP_SIGNALS, signal.SIGHUP]) as stopping:
        supervisor = Supervisor(settings.data_dir / "logs", environment_of(settings), stopping, settings.tls_ca)
        try:
            for part in parts_of(settings):
                with console.status(f"starting the {part.name}"):
                    supervisor.start(part)
                if stopping.is_set():
                    break
                console.print(f"[green]✓[/] {part.name}")
            else:
                console.print(addresses(settings), soft_wrap=True)
                watch(supervisor, settings.for_readers().clickhouse_url, console)
        finally:
            with console.status("stopping"):
                supervisor.stop()
    console.print(f"stopped; the data stays in {settings.data_dir}", soft_wrap=True)


def addresses(settings: Settings) -> str:
    """What is where, as `tachograph up` prints it."""
    rows = {
        "dashboards": dashboard_url(settings),
        "OTLP gRPC": settings.own_url(settings.otlp_grpc_port),
        "OTLP HTTP": f"{settings.own_url(settings.otlp_http_port)}/v1/traces",
        "ClickHouse SQL": shown(settings.clickhouse_url or f"{settings.own_url(settings.clickhouse_port)}/tachograph"),
        "your engine": f"{sending_line(settings)} YOUR_ENGINE",
        "data": str(settings.data_dir),
        "stop": "Ctrl-C",
    }
    return "\n".join(f"  {what:<16}{where}" for what, where in rows.items())


def sending_line(settings: Settings) -> str:
    """What an engine on this machine needs in its environment, as a shell takes it; a token by its place alone."""
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": settings.own_url(settings.otlp_grpc_port),
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
    }
    if ingest_tokens_of(settings):
        variables["OTEL_EXPORTER_OTLP_HEADERS"] = "authorization=Bearer%20TOKEN"
    if settings.tls_ca:
        variables["OTEL_EXPORTER_OTLP_CERTIFICATE"] = shlex.quote(str(settings.tls_ca.absolute()))
    return " ".join(f"{name}={value}" for name, value in variables.items())


def watch(supervisor: Supervisor, clickhouse_url: str, console: Console) -> None:
    """Say each newly stuck cell, once, until asked to stop."""
    said: set[tuple[str, str]] = set()
    began = datetime.now(UTC)
    while not supervisor.stopping.wait(3.0):
        supervisor.check()
        for stuck in stuck_cells(clickhouse_url, began):
            identity = (stuck["service_instance_id"], stuck["cell"])
            if identity not in said:
                console.print(stuck_line(stuck), soft_wrap=True)
            said.add(identity)


def stuck_cells(clickhouse_url: str, began: datetime) -> list[dict[str, Any]]:
    """The cells that are stuck, of those with executions since `began`; none while the store does not answer."""
    try:
        return run("stuck_plain", clickhouse_url, "rows", **{"from": began})
    except QueriesError:
        return []


def stuck_line(cell: dict[str, Any]) -> str:
    """One stuck cell, for the terminal."""
    speed = "unknown" if cell["tokens_per_s"] is None else f"{cell['tokens_per_s']:,.0f}"
    return (
        f"[bold red]stuck in plain decode[/]: {cell['host_name'] or cell['service_instance_id']}, cell {cell['cell']}: "
        f"{cell['plain_fraction']:.0%} of its decoding so far is plain, {speed} tokens/s"
    )


def application() -> typer.Typer:
    """Every command, from the room it belongs to: each room's `register` names its own."""
    app = typer.Typer(
        name="tachograph",
        cls=OneLineUsage,
        help="Records every graph execution of an LLM inference engine, and shows when its scheduler is fooled.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(takes_settings(up, reads=False))
    for room in (collecting, looking, asking, engines):
        room.register(app, takes_settings)
    return app


def main() -> None:
    """Entry point. Every foreseen error becomes one line and an exit code, and so does every other."""
    standard_output.watch()
    try:
        try:
            application()()
        finally:
            standard_output.flush()
    except (CollectorError, DashboardsError, EngineHooksError, QueriesError) as error:
        fail(str(error))
        sys.exit(getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong.
        standard_output.silence()
    except standard_output.OutputError as wrong:
        standard_output.silence()
        fail(str(wrong))
        sys.exit(standard_output.EXIT_CODE)
    except Exception as defect:
        report_defect(defect)
        sys.exit(1)


if __name__ == "__main__":
    main()

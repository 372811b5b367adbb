"""A server that takes connections and says nothing: every command that asks one ends within seconds, by one line."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import engine_hooks.first_answer
import queries.client
from collector.control.giving import NotTakenError
from collector.control.key import make_key
from collector.doctor.store import reading
from collector.spool.database import hold, spool_file
from collector.store import clickhouse
from collector.store.clickhouse import StoreAwayError, StoreError, connect
from engine_hooks.first_answer import is_silent
from queries.errors import UnreachableError
from tachograph import application

ASKS_CLICKHOUSE = {
    "query": ["engines"],
    "postmortem": [],
    "replay": ["a-cell", "--engine", "an-engine"],
    "compare": [],
    "changes": [],
    "top": ["--once"],
    "annotate": ["deployed 188"],
    "schema": ["--apply"],
    "retention": [],
    "retention set": ["graph_executions", "7"],
    "alerts test": ["StuckInPlain"],
    "alerts history": [],
    "alerts backtest": [],
}
"""Every command that reads a store by its URL and ends, with what it is called with."""

NO_SUCH = {
    "up": "serves until Ctrl-C",
    "collect": "serves until Ctrl-C, and keeps what comes meanwhile",
    "dashboard": "serves until Ctrl-C",
    "mcp": "serves until Ctrl-C",
    "alerts run": "serves until Ctrl-C",
    "doctor": "asks the collector first",
    "backup": "refuses a server's URL",
    "restore": "refuses a server's URL",
    "spool": "opens no store",
}


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a socket whose connections the kernel takes, and nobody else."""
    monkeypatch.setattr(engine_hooks.first_answer, "FIRST_ANSWER_S", 0.2)
    clickhouse_answers_within(monkeypatch, 1)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield listening.getsockname()[1]


def clickhouse_answers_within(monkeypatch: pytest.MonkeyPatch, first_answer_s: float) -> None:
    """The driver takes whole seconds."""
    for module in (clickhouse, queries.client):
        monkeypatch.setattr(module, "FIRST_ANSWER_S", first_answer_s)


class PingsOnly(BaseHTTPRequestHandler):
    """Answers a ping, and hangs on all else until it may go."""

    may_go: threading.Event

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Ok.\n")

    def do_POST(self) -> None:
        self.may_go.wait(120)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hanging_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server that answers /ping and nothing else."""
    clickhouse_answers_within(monkeypatch, 1)
    may_go = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hanging", (PingsOnly,), {"may_go": may_go}))
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield server.server_address[1]
    finally:
        may_go.set()
        server.shutdown()
        serving.join()
        server.server_close()


def commands_with(option: str) -> set[str]:
    """Every command that has this option, by its words."""

    def within(group: Any, words: str) -> Iterator[str]:
        for name, command in group.commands.items():
            told = f"{words} {name}".strip()
            if any(option in parameter.opts for parameter in command.params):
                yield told
            if hasattr(command, "commands"):
                yield from within(command, told)

    return set(within(get_command(application()), ""))


def test_every_command_that_takes_a_clickhouse_is_looked_at() -> None:
    taking = commands_with("--clickhouse-url")
    assert set(ASKS_CLICKHOUSE) <= taking
    assert taking <= set(ASKS_CLICKHOUSE) | set(NO_SUCH)


def told_of(command: str, url: str, tmp_path: Path) -> str:
    """What a command says of a ClickHouse that is as good as away."""
    called = CliRunner().invoke(
        application(),
        [*command.split(), *ASKS_CLICKHOUSE[command]],
        env={"TACHOGRAPH_CLICKHOUSE_URL": url, "TACHOGRAPH_DATA_DIR": str(tmp_path)},
    )
    assert isinstance(called.exception, UnreachableError | StoreAwayError), called.output
    assert called.exception.exit_code == 3
    assert not called.stdout
    return str(called.exception)


@pytest.mark.parametrize("command", ASKS_CLICKHOUSE)
def test_a_silent_clickhouse_is_told_in_one_line(command: str, port: int, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{port}/x"
    told = told_of(command, url, tmp_path)
    assert re.match(rf"(no ClickHouse answers at {url} \(it does not|ClickHouse at {url} did not) answer within", told)


@pytest.mark.parametrize("arguments", [["backup", "TO"], ["retention"], ["retention", "set", "graph_executions", "7"]])
def test_a_silent_collector_is_told_in_one_line(arguments: list[str], port: int, tmp_path: Path) -> None:
    make_key(tmp_path)
    with hold(spool_file(tmp_path)):
        called = CliRunner().invoke(
            application(),
            [one.replace("TO", str(tmp_path / "copy")) for one in arguments],
            env={"TACHOGRAPH_OTLP_HTTP_PORT": str(port), "TACHOGRAPH_DATA_DIR": str(tmp_path)},
        )
    assert isinstance(called.exception, NotTakenError), called.output
    assert str(called.exception).startswith(
        f"no collector answers at http://127.0.0.1:{port} (nothing comes back within"
    )
    assert not called.stdout


def test_doctor_looks_at_a_silent_store_no_longer(port: int) -> None:
    with pytest.raises(StoreError, match="did not answer within 1 s"), reading(f"http://127.0.0.1:{port}/x"):
        pass


@pytest.mark.parametrize("opened", [connect, lambda url: reading(url).__enter__()], ids=["commands", "doctor"])
def test_a_server_that_answers_its_ping_and_hangs_is_silent(hanging_port: int, opened: Callable[[str], object]) -> None:
    """To wait for it as for a statement of minutes would be in vain."""
    asking = ThreadPoolExecutor()
    asked = asking.submit(opened, f"http://127.0.0.1:{hanging_port}/x")
    with pytest.raises(StoreError, match="did not answer within 1 s"):
        asked.result(60)
    asking.shutdown()


@pytest.mark.parametrize("command", ASKS_CLICKHOUSE)
def test_a_clickhouse_that_hangs_is_told_in_one_line(command: str, hanging_port: int, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{hanging_port}/x"
    told = told_of(command, url, tmp_path)
    assert url in told
    assert "\n" not in told


def test_only_what_waits_in_vain_is_told_as_silence(hanging_port: int) -> None:
    for url in (f"https://127.0.0.1:{hanging_port}", "http://127.0.0.1:9"):
        with pytest.raises(StoreAwayError, match="did not answer: "):
            connect(url)


def test_only_silence_is_silence(port: int) -> None:
    assert is_silent(f"http://a:b@127.0.0.1:{port}/x?y=z", "/ping")
    assert is_silent("http://127.0.0.1", "/ping", port)
    assert is_silent(f"https://127.0.0.1:{port}", "/ping")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    assert not is_silent(f"http://127.0.0.1:{free}", "/ping")
    assert not is_silent("file:///etc/passwd", "")
    assert not is_silent("http://127.0.0.1:no", "/ping")

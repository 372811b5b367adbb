"""`tachograph top` on a real pseudo-terminal, over a real store."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from collector.sql_endpoint.server import serving_sql
from collector.store.clickhouse import connection_string
from engine_hooks.contract.span import EXECUTION_COLUMNS
from queries.postmortem.told import told_range
from tests.fixtures.asking import START
from tests.fixtures.databases import SERVER_URL
from tests.fixtures.ports import free_port
from tests.fixtures.query_rows import ENGINE, believing, insert, round_of, row_of
from tests.fixtures.terminals import Terminal, on_terminal

ROOT = Path(__file__).parents[2]
HEALTHY = ENGINE._replace(service_instance_id="node-2-b", host_name="node-2")
STUCK = ENGINE._replace(service_instance_id="node-1-a", host_name="node-1")


def fill(client: Client) -> None:
    """Four cells of a healthy engine, and of one that gets stuck in the second."""
    choice = believing({"decode": (13, 4), "P128": (28, 10)})
    for cell in range(4):
        begin = cell * 30_000
        fast = [round_of(cell * 1000 + n, begin + 28 * n, "P128", 28, **choice) for n in range(400)]
        slow = [round_of(cell * 1000 + n, begin + 13 * n, "decode", 13, **choice) for n in range(800)]
        insert(client, fast, HEALTHY)
        insert(client, slow if cell else fast, STUCK)


def insert_ahead(client: Client, ahead_s: int) -> None:
    """The healthy engine once more, on a host whose clock is ahead; its executions arrive as they end."""
    engine = ENGINE._replace(service_instance_id="node-9-z", host_name="node-9")
    rows = []
    for n in range(400):
        at_ms = 250 * n
        one = round_of(n, at_ms + 1000 * ahead_s, "P128", 28, **believing({"P128": (28, 10)}))
        rows.append([*row_of(one, engine), START + timedelta(milliseconds=at_ms + 28)])
    client.insert("new_executions", rows, column_names=[*EXECUTION_COLUMNS, "received_at"])


def environment(url: str, **more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("TACHOGRAPH_", "NO_COLOR", "COLUMNS"))
    }
    return kept | {"TACHOGRAPH_CLICKHOUSE_URL": url, "TERM": "xterm-256color"} | more


def top(url: str, width: int = 80, height: int = 24, **more: str) -> AbstractContextManager[Terminal]:
    command = [sys.executable, "-m", "tachograph", "top"]
    return on_terminal(command, ROOT, environment(url, **more), width, height)


@pytest.fixture
def filled(clickhouse: Client) -> Client:
    fill(clickhouse)
    return clickhouse


@pytest.fixture
def url(filled: Client, clickhouse_url: str) -> str:
    return clickhouse_url


def shows(*texts: str) -> Callable[[str], bool]:
    return lambda screen: all(text in screen for text in texts)


def row(terminal: Terminal, engine: str) -> str:
    return next(line for line in terminal.lines if line[2:].startswith(engine))


def test_keys_walk_the_fleet_and_tell_of_a_cell(url: str) -> None:
    with top(url) as terminal:
        # The keys' line is there before the cells are: a screen may be read amid a frame.
        terminal.wait_for(
            shows("> node-1-a", "node-2-b", "q quit", "cell 1793491290 · 100% plain, stuck · 308 tokens/s")
        )
        assert terminal.lines[0] == "tachograph top  2 engines, 1 stuck, 0 inflated  by lost  00:01:41 UTC"
        assert row(terminal, "node-1-a").endswith(" 308" + " " * 45 + "S P!P!P!")
        assert row(terminal, "node-2-b").endswith("S S S S")
        assert "00:01:30 · node-1-a · cell 1793491290 · 100% plain, stuck · 308 tokens/s · c32" in terminal.lines
        assert len(terminal.colours(terminal.lines.index(row(terminal, "node-1-a")))) > 2
        terminal.type("j")
        terminal.wait_for(shows("> node-2-b", "0% plain · 357 tokens/s"))
        terminal.type("\x1b[A\x1b[D")
        terminal.wait_for(shows("> node-1-a", "00:01:00 · node-1-a · cell 1793491260"))
        terminal.type("\r")
        terminal.wait_for(shows("Mostly in plain decode (100 %)"))
        terminal.type("s")
        terminal.wait_for(shows("by slowest"))
        terminal.type("/2q")
        terminal.wait_for(shows("No host's name contains '2q'"))
        terminal.type("\x7f\r")
        assert "node-1-a" not in terminal.wait_for(shows("1 engine,", "> node-2-b", "q quit"))
        terminal.type("\x1b")
        terminal.wait_for(shows("2 engines"))
        terminal.type("q")
        assert terminal.ends() == 0


def test_the_screen_follows_the_terminal(url: str) -> None:
    with top(url) as terminal:
        terminal.wait_for(shows("> node-1-a", "q quit"))
        terminal.resize(140, 12)
        terminal.wait_for(lambda _: len(terminal.lines[4]) > 130 and terminal.lines[11].startswith("q quit"))
        assert "00:00" in terminal.lines[2]
        terminal.resize(30, 6)
        terminal.wait_for(
            lambda _: terminal.lines[5].startswith("q quit") and terminal.lines[4].startswith("> node-1-a")
        )
        terminal.resize(80, 24)
        terminal.wait_for(lambda _: terminal.lines[23].startswith("q quit") and "plain: S" in terminal.lines[22])
        terminal.type("q")
        assert terminal.ends() == 0


def test_the_terminal_is_left_as_it_was(url: str) -> None:
    for how in ("q", "\x03", signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with top(url) as terminal:
            before = terminal.attributes
            terminal.wait_for(shows("> node-1-a"))
            assert terminal.attributes != before
            if isinstance(how, str):
                terminal.type(how)
            else:
                terminal.process.send_signal(how)
            assert terminal.ends() == 0, how
            assert terminal.attributes == before, how
            for on, off in ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h")):
                assert terminal.written.rindex(off) > terminal.written.rindex(on), how


def test_no_colour_leaves_letters_and_flags(url: str) -> None:
    with top(url, NO_COLOR="1") as terminal:
        terminal.wait_for(shows("S P!P!P!", "S S S S"))
        terminal.wait_for(shows("q quit"))
        assert all(is_grey(colour) for line in range(24) for colour in terminal.colours(line))
        terminal.type("q")
        assert terminal.ends() == 0


def is_grey(colour: str) -> bool:
    return colour == "default" or (len(colour) == 6 and colour[:2] == colour[2:4] == colour[4:])


def test_a_store_that_is_away_leaves_the_last_answer_with_its_age(filled: Client, data_dir: Path) -> None:
    if SERVER_URL:
        pytest.skip("a server that others use is not to be taken away")
    port, store = free_port(), connection_string(data_dir)
    url = f"http://127.0.0.1:{port}/{filled.database}"
    with top(url) as terminal:
        terminal.wait_for(shows(f"! no ClickHouse answers at http://127.0.0.1:{port}/"))
        with serving_sql(store, str(filled.database), port=port):
            terminal.wait_for(shows("> node-1-a"))
            assert "!" not in terminal.lines[1]
        terminal.wait_for(shows("> node-1-a", " s old: no ClickHouse answers"))
        insert(filled, [round_of(9000, 150_000, "P128", 28)], HEALTHY._replace(host_name="node-3"))
        with serving_sql(store, str(filled.database), port=port):
            terminal.wait_for(shows("00:02:30 UTC"))
            assert "!" not in terminal.lines[1]
            terminal.type("q")
            assert terminal.ends() == 0


def test_marks_stand_above_their_time(filled: Client, url: str) -> None:
    note(filled, START + timedelta(seconds=65), "deployed 188")
    with top(url) as terminal:
        terminal.wait_for(shows("> node-1-a", "▼ 00:01:05 deployed 188 (node-1)"))
        axis = next(line for line in terminal.lines if line.strip() == "▼")
        assert axis.index("▼") == row(terminal, "node-1-a").index("S P!P!P!") + 4
        terminal.type("q")
        assert terminal.ends() == 0


def note(client: Client, at: datetime, text: str) -> None:
    client.insert(
        "annotations",
        [["1", at, text, "node-1", datetime.now(UTC)]],
        column_names=["annotation_id", "at", "text", "host_name", "made_at"],
    )


def test_once_prints_a_frame_for_scripts(url: str) -> None:
    printed = run(url, "--once")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert "\x1b" not in printed.stdout
    assert printed.stdout.startswith("tachograph top  2 engines, 1 stuck")
    assert "S P!P!P!" in printed.stdout
    assert max(map(len, run(url, "--once", COLUMNS="80").stdout.splitlines())) <= 80
    only = run(url, "--once", "--host", "NODE-2")
    assert "node-1" not in only.stdout
    assert "node-2-b" in only.stdout


@pytest.mark.parametrize(("ahead_s", "words"), [(7200, "clock 2 h ahead"), (94_608_000, "clock 1,095 d ahead")])
def test_one_clock_that_is_ahead_hides_no_engine(filled: Client, clickhouse_url: str, ahead_s: int, words: str) -> None:
    insert_ahead(filled, ahead_s)
    title, state, *rest = run(clickhouse_url, "--once").stdout.splitlines()
    assert title == "tachograph top  3 engines, 1 stuck, 0 inflated  by lost  00:01:41 UTC"
    assert state == f"! node-9: {words}"
    rows = {line[2:10]: line.rstrip() for line in rest}
    assert rows["node-1-a"].endswith("S P!P!P!")
    assert rows["node-2-b"].endswith("S S S S")
    assert rows["node-9-z"].endswith(words)
    assert not any(f" -{unit}" in line for unit in "123456789" for line in rest)


def test_a_post_mortem_of_the_newest_cell_is_not_of_one_to_come(clickhouse: Client, clickhouse_url: str) -> None:
    choice = believing({"decode": (13, 4), "P128": (28, 10)})
    insert(clickhouse, [round_of(n, 90_000 + 28 * n, "P128", 28, **choice) for n in range(400)], HEALTHY)
    insert_ahead(clickhouse, 7200)
    (newest,) = told_range(clickhouse_url).told
    assert newest.recorded.engine.host_name == "node-2"


def test_once_into_a_pipe_cuts_no_name(filled: Client, clickhouse_url: str) -> None:
    choice = believing({"decode": (13, 4), "P128": (28, 10)})
    names = [f"demo-fooled-17960222{number}-4711" for number in (11, 44)]
    for name in names:
        rounds = [round_of(n, 90_000 + 28 * n, "P128", 28, **choice) for n in range(400)]
        insert(filled, rounds, ENGINE._replace(service_instance_id=name, host_name="demo-fooled"))
    printed = run(clickhouse_url, "--once")
    assert all(f" {name} " in printed.stdout for name in names)
    assert " tokens/s · " in printed.stdout


def test_what_cannot_be_shown_is_one_line(tmp_path: Path) -> None:
    away = run(f"http://127.0.0.1:{free_port()}/x", "--once")
    assert (away.returncode, away.stdout, away.stderr.count("\n")) == (3, "", 1)
    piped = run("http://127.0.0.1:1/x")
    assert (piped.returncode, piped.stdout) == (2, "")
    assert piped.stderr == "tachograph: top needs a terminal: `tachograph top --once` prints one frame\n"


def run(url: str, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tachograph", "top", *arguments],
        cwd=ROOT,
        env=environment(url, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

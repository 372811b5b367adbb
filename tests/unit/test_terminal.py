"""Tables of every command: whole in a pipe, folded and never cut on a narrow terminal."""

import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from engine_hooks.commands import terminal
from engine_hooks.commands.terminal import folding, output_console, print_table, shortened
from queries.catalogue import find
from queries.terminal import answer_table

ROOT = Path(__file__).parents[2]
LONG = "graph_executions_of_a_host_with_a_rather_long_name_" * 4
ROOMS = ("engine_hooks", "collector", "queries")
OWN_CONSOLES = {"terminal.py", "silences.py"}
"""The one place, and the table whose ids are not even to be folded."""


@pytest.fixture
def wide_names() -> Table:
    table = Table("table", "rows", "kept")
    table.add_column("no wrap", no_wrap=True)
    table.add_row(LONG, "12,345", "400", LONG)
    return table


def test_off_a_terminal_a_table_is_as_wide_as_it_needs(
    wide_names: Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(wide_names)
    lines = capsys.readouterr().out.splitlines()
    assert sum(LONG in line for line in lines) == 1
    assert max(map(len, lines)) < 2 * len(LONG) + 50


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_narrow_one_folds_names_and_cuts_none(
    columns: int, wide_names: Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(wide_names)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns
    cells = [[part.strip() for part in line.split("│")[1:-1]] for line in shown.splitlines() if "│" in line]
    assert ["".join(parts) for parts in zip(*cells, strict=True)] == [LONG, "12,345", "400", LONG]


def test_answers_to_questions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    query = find("engines")
    row = {column.name: None for column in query.columns} | {"service_instance_id": LONG}
    monkeypatch.delenv("COLUMNS", raising=False)
    assert LONG in answer_table(query, [row]).decode()


def test_an_overlong_name_ends_by_an_ellipsis() -> None:
    assert shortened("h" * 256) == "h" * 256
    assert shortened("h" * 257) == "h" * 255 + "…"
    assert shortened(f"a={'h' * 5000}, b=short") == f"a={'h' * 253}… b=short"
    assert shortened("a word " * 1000) == ("a word " * 1000)[:999] + "…"


@pytest.mark.parametrize("columns", [80, 120, None], ids=["80", "120", "no terminal"])
@pytest.mark.parametrize("name", ["h" * 5000, "h h " * 1250], ids=["one word", "words"])
@pytest.mark.parametrize("question", ["engines", "clock_skew"])
def test_one_overlong_name_spoils_no_table(
    question: str, name: str, columns: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = find(question)
    row = {column.name: None for column in query.columns} | {"service_instance_id": "engine-1", "host_name": name}
    monkeypatch.setenv("COLUMNS", str(columns))
    if columns is None:
        monkeypatch.delenv("COLUMNS")
    shown = answer_table(query, [row]).decode()
    assert "…" in shown
    assert len(shown.splitlines()) < 40
    assert max(map(len, shown.splitlines())) < 1200


def test_a_terminal_is_as_wide_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "Console", lambda **options: Console(force_terminal=True, **{"width": 70} | options))
    assert output_console().width == 70
    table = folding(Table("name"))
    assert table.columns[0].overflow == "fold"


def test_no_command_makes_a_console_of_its_own_for_what_it_prints() -> None:
    made = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for room in ROOMS
        for file in sorted((ROOT / room).rglob("*.py"))
        for line in file.read_text().splitlines()
        if re.search(r"\bConsole\(\)", line) and file.name not in OWN_CONSOLES
    ]
    assert not made

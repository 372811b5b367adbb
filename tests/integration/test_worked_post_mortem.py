"""docs/worked-post-mortem.md, followed to the letter: every command and statement runs, and prints what the page shows."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import clickhouse_connect
import pytest
from typer.testing import CliRunner

from tachograph import application
from tests.fixtures.running import ROOT, Addresses, running_collector

PAGE = ROOT / "docs" / "worked-post-mortem.md"
BLOCK = re.compile(r"```(console|sql|python)\n(.*?)```\n(?:\n(\|.*?\n|```text\n.*?```\n)(?=\n))?", re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)
COLUMNS = "150"


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Addresses]:
    """A store with nothing in it but what the page puts there."""
    with running_collector(tmp_path / "data") as addresses:
        yield addresses


def printed_by_commands(commands: list[str], at: Addresses) -> str:
    """What the commands of a console block print, each after its own line."""
    shown = []
    environment = {name: value for name, value in at.environment().items() if name.startswith("TACHOGRAPH_")}
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "tachograph"
        outcome = CliRunner().invoke(application(), arguments, env={**environment, "COLUMNS": COLUMNS})
        assert outcome.exit_code == 0, outcome.output
        said = outcome.output.replace(at.otlp_grpc, "http://127.0.0.1:4317")
        shown.append(f"$ {command}\n{trimmed(said)}")
    return "".join(shown)


def trimmed(text: str) -> str:
    """Without blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def answered_by_sql(statement: str, at: Addresses) -> str:
    """The answer as a table of Markdown."""
    with clickhouse_connect.get_client(dsn=at.clickhouse_url) as client:
        return client.raw_query(statement, fmt="Markdown").decode()


def printed_by_python(program: str, at: Addresses, cwd: Path) -> str:
    """What the program prints."""
    printed = io.StringIO()
    program = program.replace("http://127.0.0.1:8123/tachograph", at.clickhouse_url)
    with contextlib.redirect_stdout(printed), contextlib.chdir(cwd):
        exec(program, {})  # noqa: S102 -- the page's own
    return f"```text\n{trimmed(printed.getvalue())}```\n"


def followed(page: str, at: Addresses, cwd: Path) -> str:
    """The page with what its blocks print now."""

    def block(found: "re.Match[str]") -> str:
        language, body, _ = found.groups()
        if language == "console":
            return f"```console\n{printed_by_commands(COMMAND.findall(body), at)}```\n"
        told = answered_by_sql(body, at) if language == "sql" else printed_by_python(body, at, cwd)
        return f"```{language}\n{body}```\n\n{told}"

    return BLOCK.sub(block, page)


def test_the_page_shows_what_its_commands_print(collector: Addresses, tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert followed(page, collector, tmp_path) == page
    assert (tmp_path / "executions.parquet").stat().st_size > 0

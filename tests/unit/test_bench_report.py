"""Rows of benchmarks: kept, merged, and held side by side."""

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.benchmarks import report
from tests.benchmarks.report import Result, comparison, merge, read, table_of

SLOW = Result.of("recorder: record()", 200.0, 1000.0, "ns", 10, "protobuf")


def text_of(table: object) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_rows_carry_ratio_and_versions() -> None:
    assert SLOW.ratio == 0.2
    assert {"machine", "python", "protobuf"} == set(SLOW.versions)
    assert Result.of("x", 1, None, "s", 1).ratio is None
    assert Result.of("x", 1, 0.0, "s", 1).ratio is None


def test_a_row_replaces_the_one_of_its_name_and_size(tmp_path: Path) -> None:
    file = tmp_path / "build" / "bench.json"
    merge([SLOW, SLOW._replace(n=20)], file)
    merge([SLOW._replace(ours=100.0)], file)
    assert [(row.n, row.ours) for row in read(file)] == [(10, 100.0), (20, 200.0)]
    assert list(json.loads(file.read_text())[0]) == ["name", "ours", "reference", "ratio", "unit", "n", "versions"]
    assert list(file.parent.iterdir()) == [file]


def test_tables() -> None:
    fast, other = SLOW._replace(ours=50.0), Result.of("ingest: gRPC", 31_900, None, "executions/s", 5)
    shown = text_of(comparison([SLOW, other], [fast], ("before.json", "after.json")))
    assert "0.25" in shown
    assert "31,900" in shown
    assert "protobuf" in text_of(table_of([SLOW], "title"))


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.benchmarks import __main__ as command

    assert {"recorder", "scheduler", "ingest", "storage", "alerts", "visible"} <= set(command.topics())
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for file in files:
        report.merge([SLOW], Path(file))
    compared = CliRunner().invoke(command.app, ["compare", *files])
    assert compared.exit_code == 0
    assert "b.json against a.json" in compared.output
    rows = files[0]
    for name, content in (("text", "no JSON"), ("bytes", "\udcff"), ("number", "7"), ("other", '[{"name": "x"}]')):
        other = tmp_path / name
        other.write_bytes(content.encode("utf-8", "surrogateescape"))
        refused = CliRunner().invoke(command.app, ["compare", rows, str(other)])
        assert refused.exit_code == 1
        assert refused.output.strip() == f"{other} holds no rows of a benchmark: `make bench` writes them"
    missing = CliRunner().invoke(command.app, ["compare", str(tmp_path / "none.json"), rows])
    assert missing.output.strip() == f"{tmp_path / 'none.json'}: No such file or directory"
    unknown = CliRunner().invoke(command.app, ["--only", "nothing"])
    assert unknown.exit_code == 2

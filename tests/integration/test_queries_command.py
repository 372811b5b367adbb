"""`tachograph query` and the runner over HTTP, as a user and a script meet them."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pandas
import pyarrow.csv
import pyarrow.parquet
import pytest
from clickhouse_connect.driver.client import Client

from queries.catalogue import find, load
from queries.client import connected
from queries.commands.query import OutputFormat, query
from queries.errors import CallError, ParameterError, RefusedError, UnknownQueryError
from queries.runner import asked, run, save
from tests.fixtures.query_rows import START_NS, insert, round_of

ROOT = Path(__file__).parents[2]


class Settings(NamedTuple):
    clickhouse_url: str


@pytest.fixture
def url(clickhouse: Client, clickhouse_url: str) -> str:
    """Two cells of one engine: plain decode with a speculative round, and a cell of a benchmark."""
    insert(
        clickhouse,
        [
            round_of(0, 0.000001, "P128", 28.5),
            *(round_of(1 + n, 100 + 1000 * n, "decode", 1000) for n in range(4)),
            round_of(6, 5000, "P128", 28, cell_id="bench-1", cell_arm="after"),
        ],
    )
    return clickhouse_url


def test_a_table_for_the_eye(
    url: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    query(Settings(url), "graph_costs", ["graph=P128", "by_cell=true"])
    text = capsysbinary.readouterr().out.decode()
    assert "gpu_time_median" in text
    assert "│ ms" in text or " ms " in text
    assert "28.500" in text
    assert "bench-1" in text


def test_a_stuck_cell_is_marked(
    url: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # A table drops the columns that its terminal has no room for.
    query(Settings(url), "cells", ["host=node-1"])
    text = capsysbinary.readouterr().out.decode()
    assert "stuck" in text
    assert "2026-11-01 00:00:00.000" in text


def test_json_csv_and_parquet_are_exact(url: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    names = [column.name for column in find("executions").columns]
    query(Settings(url), "executions", ["limit=2"], "json")
    first, second = json.loads(capsysbinary.readouterr().out)
    assert (first["started_at"], first["graph_gpu_time_ns"]) == ("2026-11-01 00:00:00.000000001", 28_500_000)
    assert list(second) == names
    query(Settings(url), "executions", ["limit=2"], "csv")
    table = pyarrow.csv.read_csv(io.BytesIO(capsysbinary.readouterr().out))
    assert (table.num_rows, table.column_names) == (2, names)
    query(Settings(url), "executions", ["limit=2"], None, tmp_path / "out.parquet")
    assert capsysbinary.readouterr().out == b""
    parquet = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert (parquet.num_rows, parquet.column_names) == (2, names)


@pytest.mark.parametrize("format", ["table", "csv", "json", "parquet"])
def test_an_empty_answer_says_so_and_succeeds(
    url: str, capsysbinary: pytest.CaptureFixture[bytes], format: str
) -> None:
    query(Settings(url), "cells", ["host=absent"], format)  # type: ignore[arg-type]
    answer = capsysbinary.readouterr()
    assert answer.err == b"query cells: no rows for these parameters\n"
    assert format != "json" or json.loads(answer.out) == []


def test_without_a_name_the_catalogue_is_listed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    nowhere = Settings("http://127.0.0.1:9/none")
    query(nowhere)
    text = capsysbinary.readouterr().out.decode()
    assert all(name in text for name in load())
    query(nowhere, format="json")
    listed = json.loads(capsysbinary.readouterr().out)
    assert [entry["name"] for entry in listed] == list(load())
    assert listed[0]["parameters"][0]["type"] == "DateTime64(9, 'UTC')"


def test_wrong_calls_are_one_line_with_exit_code_2(url: str, tmp_path: Path) -> None:
    wrong = [
        (UnknownQueryError, "did you mean cells", lambda: query(Settings(url), "cell")),
        (ParameterError, "did you mean host", lambda: query(Settings(url), "cells", ["hots=a"])),
        (CallError, "NAME=VALUE", lambda: query(Settings(url), "cells", ["host"])),
        (CallError, "given twice", lambda: query(Settings(url), "cells", ["host=a", "host=b"])),
        (CallError, "needs the name", lambda: query(Settings(url), None, ["host=a"])),
        (CallError, "not csv", lambda: query(Settings(url), None, None, "csv")),
        (
            CallError,
            r"x\.xlsx: the suffix .* \.csv, \.json, \.parquet, \.txt; ",
            lambda: to_file(url, tmp_path / "x.xlsx"),
        ),
        (CallError, r"x\.jsonl: the suffix", lambda: to_file(url, tmp_path / "x.jsonl")),
        (CallError, "No such file", lambda: query(Settings(url), "cells", None, "csv", tmp_path / "no" / "x.csv")),
    ]
    for error, says, call in wrong:
        with pytest.raises(error, match=says) as refused:
            call()
        assert refused.value.exit_code == 2
        assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def to_file(url: str, output: Path, format: OutputFormat | None = None) -> bytes:
    query(Settings(url), "executions", ["limit=2"], format, output)
    return output.read_bytes()


def test_a_file_is_of_the_format_that_its_suffix_or_the_option_says(url: str, tmp_path: Path) -> None:
    assert to_file(url, tmp_path / "X.CSV") == to_file(url, tmp_path / "x.xlsx", "csv")
    assert to_file(url, tmp_path / "x.txt") == to_file(url, tmp_path / "x") == to_file(url, tmp_path / "x.md", "table")
    assert len(json.loads(to_file(url, tmp_path / "x.json"))) == 2


def test_a_database_without_the_table_is_one_clear_line(url: str) -> None:
    with pytest.raises(RefusedError, match="has no graph_executions: the collector creates it") as refused:
        run("cells", f"{url.rsplit('/', 1)[0]}/absent", "rows")
    assert refused.value.exit_code == 4
    assert "\n" not in str(refused.value)


def test_the_runner_gives_rows_pandas_and_arrow(url: str) -> None:
    rows = run("executions", url, "rows", limit=2)
    frame = run("executions", url, limit=2)
    table = run("executions", url, "arrow", limit=2)
    assert [row["graph_sequence"] for row in rows] == [0, 1]
    assert frame["graph_sequence"].tolist() == [0, 1] == table["graph_sequence"].to_pylist()
    assert pandas.Timestamp(frame["started_at"][0]).value == START_NS + 1
    later = run("cells", url, "rows", **{"from": "2026-11-01T00:00:05Z"})
    assert [row["cell"] for row in later] == ["bench-1"]


def test_an_empty_frame_has_its_columns(url: str) -> None:
    frame = run("cells", url, host="absent")
    assert frame.empty
    assert list(frame.columns) == [column.name for column in find("cells").columns]


@pytest.mark.parametrize("name", ["executions", "cells", "live_cells", "graph_costs"])
def test_a_frame_in_many_blocks_is_the_frame_in_one(url: str, name: str) -> None:
    whole = run(name, url)
    client = connected(url)
    client.set_client_setting("max_block_size", 1)
    try:
        with client.query_df_stream(*asked(name, {})) as stream:
            assert len([block for block in stream if len(block)]) > 1, "one block: nothing is tested"
        pandas.testing.assert_frame_equal(run(name, url), whole)
    finally:
        connected.cache_clear()


def test_text_with_quotes_is_bound_not_formatted(url: str) -> None:
    for text in ("a' OR 1 = 1 --", "\\", "a\tb\nc", "é'", "{host:String}"):
        assert run("cells", url, "rows", host=text) == []


def test_a_reader_that_has_gone_is_no_fault() -> None:
    call = "from queries.commands.query import query; query(None, format='json')"
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([sys.executable, "-c", call], stdout=writer, stderr=subprocess.PIPE, check=False, cwd=ROOT)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_save_writes_a_file_by_its_suffix(url: str, tmp_path: Path) -> None:
    path = save("executions", url, tmp_path / "out.parquet", limit=2)
    table = pyarrow.parquet.read_table(path)
    assert table.column("graph_sequence").to_pylist() == [0, 1]
    assert save("executions", url, str(tmp_path / "out.csv"), limit=2).read_text().count("\n") == 3
    lines = save("executions", url, tmp_path / "out.jsonl", limit=2).read_text().splitlines()
    assert json.loads(lines[0])["started_at"] == "2026-11-01 00:00:00.000000001"
    with pytest.raises(CallError, match=r"out\.xlsx: the suffix says the format"):
        save("executions", url, tmp_path / "out.xlsx")
    with pytest.raises(CallError, match="No such file or directory"):
        save("executions", url, tmp_path / "absent" / "out.csv")


@pytest.mark.parametrize("name", load())
def test_every_query_is_one_call_from_pandas_arrow_and_parquet(url: str, tmp_path: Path, name: str) -> None:
    columns = [column.name for column in find(name).columns]
    assert list(run(name, url, "pandas").columns) == columns
    assert run(name, url, "arrow").column_names == columns
    assert pyarrow.parquet.read_table(save(name, url, tmp_path / "out.parquet")).column_names == columns

"""Post-mortems of stored cells whose cause is known: told in every form, each sentence with SQL that answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from queries.findings.findings import Kind
from queries.postmortem.markdown import markdown_of, queries_of
from queries.postmortem.story import poisons_of
from queries.postmortem.told import told, told_range
from queries.runner import run
from tests.fixtures.query_rows import insert_file

ROOT = Path(__file__).parents[2]
CELLS = ("r001", "r014", "r021")


@pytest.fixture
def url(clickhouse: Client, clickhouse_url: str, cases: Path) -> str:
    """A store of three cells: acceptance collapsed, stuck by one delay, healthy on a host whose clock is ahead."""
    for cell in CELLS:
        insert_file(clickhouse, cases / f"cells/{cell}.otlp.gz")
    return clickhouse_url


def command(url: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TACHOGRAPH_")}
    return subprocess.run(
        [sys.executable, "-m", "tachograph", "postmortem", *arguments],
        cwd=ROOT,
        env=kept | {"TACHOGRAPH_CLICKHOUSE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_stuck_cell_is_told_with_its_poison_and_its_loss(url: str) -> None:
    story = told(url, "bench-r014").story
    assert story.diagnosis.stuck_by_fault
    assert story.headline.startswith("Stuck in plain decode (92 % of its decoding) by an inflated estimate; ")
    assert story.diagnosis.expected_loss_percent == pytest.approx(5.66, abs=0.5)
    (poison,) = poisons_of(story.diagnosis)
    assert (poison.graph, poison.sequence) == ("P128", 784)
    assert story.marks_s == (pytest.approx(2.385, abs=0.001),)
    assert len(story.strip) == 30
    assert all(second.plain > 0.9 for second in story.strip[3:])
    text = markdown_of(story)
    assert "Execution 784 of P128" in text
    assert "30.12 ms to 38.73 ms" in text
    assert "; its end: still going when the cell ends." in text
    assert "recording" not in text


def test_plain_decode_that_was_right_is_told_so(url: str) -> None:
    story = told(url, "bench-r001").story
    assert "rightly so" in story.headline
    assert not story.diagnosis.stuck_by_fault
    assert not poisons_of(story.diagnosis)


def test_every_sentence_has_sql_behind_it_that_answers(url: str) -> None:
    for cell in CELLS:
        story = told(url, f"bench-{cell}").story
        for chapter in story.chapters:
            assert all(sentence.queries for sentence in chapter.sentences), chapter
        for use in queries_of(story):
            assert run(use.name, url, "rows", **use.parameters), use


def test_a_range_begins_with_the_costliest_cell(url: str) -> None:
    among = told_range(url, from_="2026-11-01")
    assert (among.cells, among.flagged) == (3, 2)
    assert [one.story.diagnosis.label for one in among.told] == [Kind.ESTIMATE_INFLATION, Kind.ACCEPTANCE_COLLAPSE]


def test_the_command_in_every_form(url: str, tmp_path: Path) -> None:
    trace = tmp_path / "r014.json"
    shown = command(url, "bench-r014", "--export", "perfetto", str(trace))
    assert shown.returncode == 0, shown.stderr
    assert "Stuck in plain decode" in shown.stdout
    assert "tachograph query executions" in shown.stdout
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(event["ph"] == "X" and event["cat"] != "host" for event in events) == 2074
    assert [event["args"]["graph_sequence"] for event in events if event["ph"] == "i"] == [784]
    document = json.loads(command(url, "bench-r014", "--format", "json").stdout)
    assert document["diagnosis"]["label"] == "estimate_inflation"
    assert document["chapters"][0]["sentences"][0]["queries"][0]["sql"].lstrip().startswith(("WITH", "SELECT"))
    report = tmp_path / "story.md"
    assert command(url, "--from", "2026-11-01", "--output", str(report)).returncode == 0
    assert report.read_text().startswith("## Stuck in plain decode")


WRONG = {
    ("no-such-cell",): "no execution of cell no-such-cell",
    ("bench-r014", "--from", "-1h"): "a cell is told whole",
    ("bench-r014", "--export", "svg", "x"): "--export svg",
    ("bench-r014", "--output", "/no/such/folder/x.md"): "/no/such/folder/x.md",
    ("bench-r014", "--output", "x.pdf"): "x.pdf: the suffix says the format, one of .md, .json, .txt; ",
    ("--engine", "nobody"): "no cell of engine nobody",
}


def test_a_wrong_call_is_one_line(url: str) -> None:
    for arguments, said in WRONG.items():
        ended = command(url, *arguments)
        assert ended.returncode == 2
        assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
        assert said in ended.stderr

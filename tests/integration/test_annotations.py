"""Marks on the real engine: asked, told in post-mortems, and noted through a running collector."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client

from dashboards.links import FLEET_PAGE
from engine_hooks.contract.execution import EngineResource
from queries.annotations.marks import Mark
from queries.postmortem.markdown import markdown_of
from queries.postmortem.told import told
from tests.fixtures.asking import ask, moment, picked
from tests.fixtures.pages import page_opened, said
from tests.fixtures.query_rows import START_NS, insert, round_of
from tests.fixtures.running import running_collector, tachograph

START = datetime.fromtimestamp(START_NS / 1e9, UTC)


def noted(client: Client, after_s: float, text: str, **names: str) -> None:
    mark = Mark(text, START + timedelta(seconds=after_s), text, author="me", **names)
    client.insert("annotations", [[*mark, mark.at]], column_names=[*Mark._fields, "made_at"])


def texts(client: Client, **values: object) -> list[str]:
    return [row["text"] for row in ask(client, "annotations", **{"from": "2026-11-01"} | values)]


def test_annotations(clickhouse: Client) -> None:
    noted(clickhouse, 1.5, "all")
    noted(clickhouse, 2, "on node-1", host_name="node-1")
    noted(clickhouse, 3, "engine-2", service_instance_id="engine-2")
    noted(clickhouse, 4, "main here", host_name="node-1", engine_package="main")
    assert texts(clickhouse) == ["main here", "engine-2", "on node-1", "all"]
    assert texts(clickhouse, host="node-2") == ["engine-2", "all"]
    assert texts(clickhouse, host="node-1", package="other") == ["engine-2", "on node-1", "all"]
    assert texts(clickhouse, service_instance_id="engine-1") == ["main here", "on node-1", "all"]
    assert texts(clickhouse, **{"from": START + timedelta(seconds=2), "to": START + timedelta(seconds=4)}) == [
        "engine-2",
        "on node-1",
    ]
    assert texts(clickhouse, limit=1) == ["main here"]
    golden = {
        "annotation_id": "all",
        "at": moment(1500),
        "text": "all",
        "host_name": "",
        "service_instance_id": "",
        "engine_package": "",
        "author": "me",
        "made_at": moment(1500),
    }
    row = ask(clickhouse, "annotations", **{"from": "2026-11-01"})[-1]
    assert picked(row, golden) == golden
    assert set(row) == set(golden)


def test_a_post_mortem_tells_what_was_noted(clickhouse: Client, clickhouse_url: str) -> None:
    insert(clickhouse, [round_of(n, 28 * n, "P128", 28) for n in range(100)])
    noted(clickhouse, -3601, "too early")
    noted(clickhouse, -2460, "deployed 188", engine_package="main")
    noted(clickhouse, 1, "of another", host_name="node-2")
    noted(clickhouse, 1.25, "load test")
    noted(clickhouse, 5, "too late")
    story = told(clickhouse_url, str(START_NS // 1_000_000_000)).story
    chapter = story.chapters[-1]
    assert chapter.title == "What was noted"
    assert [sentence.text for sentence in chapter.sentences] == [
        "41 min before the cell: deployed 188, about package main, by me (2026-10-31 23:19:00 UTC).",
        "1.2 s into it: load test, by me (2026-11-01 00:00:01 UTC).",
    ]
    (use,) = chapter.sentences[0].queries
    assert len(ask(clickhouse, use.name, **use.parameters)) == 2
    assert "tachograph query annotations --param from=2026-10-31T23:00:00" in markdown_of(story)


def test_a_mark_that_names_something_is_not_of_an_engine_without_that_name(
    clickhouse: Client, clickhouse_url: str
) -> None:
    nameless = EngineResource("engine-1")
    insert(clickhouse, [round_of(n, 28 * n, "P128", 28) for n in range(100)], nameless)
    noted(clickhouse, 1, "bad host", host_name="nothere")
    noted(clickhouse, 1.5, "bad package", engine_package="nothere")
    noted(clickhouse, 2, "load test")
    noted(clickhouse, 2.5, "its own", service_instance_id="engine-1")
    (chapter,) = [
        one
        for one in told(clickhouse_url, str(START_NS // 1_000_000_000)).story.chapters
        if one.title == "What was noted"
    ]
    assert [sentence.text.split(": ")[1].split(",")[0] for sentence in chapter.sentences] == [
        "load test",
        "its own",
    ]
    # Nothing asked for is still any.
    assert texts(clickhouse) == ["its own", "load test", "bad package", "bad host"]
    assert texts(clickhouse, of_one=True) == ["load test"]


def test_tokens_that_no_execution_reports_have_no_rate(clickhouse: Client, clickhouse_url: str) -> None:
    for name, tokens, shown in (("silent", None, "-"), ("none", 0, "0"), ("told", 10, "357")):
        engine = EngineResource(name)
        insert(clickhouse, [round_of(n, 28 * n, "P128", 28, batch_tokens_emitted=tokens) for n in range(100)], engine)
        figures = told(clickhouse_url, str(START_NS // 1_000_000_000), name).story.figures
        assert figures[0] == ("tokens/s", shown)


def test_a_store_without_marks_is_told_all_the_same(clickhouse: Client, clickhouse_url: str) -> None:
    insert(clickhouse, [round_of(n, 28 * n, "P128", 28) for n in range(100)])
    assert told(clickhouse_url, str(START_NS // 1_000_000_000)).story.chapters[-1:] == ()
    clickhouse.command("DROP TABLE annotations")
    (sentence,) = told(clickhouse_url, str(START_NS // 1_000_000_000)).story.chapters[-1].sentences
    assert sentence.text.startswith("The marks could not be read: ")


def test_a_mark_is_noted_and_listed(tmp_path: Path, clickhouse_url: str) -> None:
    with running_collector(tmp_path) as addresses:
        made = tachograph(addresses, "annotate", "deployed 188", "--host", "node-1", "--at", "-15m", "--author", "me")
        assert (made.returncode, made.stderr.count("\n")) == (0, 1)
        assert "warning: no engine is stored that this is about (node-1)" in made.stderr
        assert made.stdout.endswith(" UTC  deployed 188  (node-1)\n")
        assert tachograph(addresses, "annotate", "a mistake").stderr == ""
        shown = tachograph(addresses, "annotate", "--list")
        assert "deployed 188" in shown.stdout
        assert "tachograph query annotations --format" in " ".join(shown.stdout.split()), "it has no such option"
        (mistake,) = re.findall(r"([0-9a-f]{8})\W+a mistake", shown.stdout)
        removed = tachograph(addresses, "annotate", "--remove", mistake)
        assert (removed.returncode, removed.stdout[:12]) == (0, "taken back: "), removed.stderr
        shown = tachograph(addresses, "annotate", "--list")
        assert ("deployed 188" in shown.stdout, "a mistake" in shown.stdout) == (True, False)
        assert tachograph(addresses, "annotate", "--remove", mistake).returncode == 2
        elsewhere = tachograph(addresses, "annotate", "for another store", "--clickhouse-url", clickhouse_url)
        assert (elsewhere.returncode, elsewhere.stdout, elsewhere.stderr.count("\n")) == (2, "", 1)
        assert f"does not store in {clickhouse_url}: name the one that does by TACHOGRAPH_ROWS_URL" in elsewhere.stderr
        assert "for another store" not in tachograph(addresses, "annotate", "--list").stdout
        none = tachograph(addresses, "annotate", "--list", "--host", "node-2")
        assert (none.returncode, none.stdout, none.stderr) == (0, "", "nothing was noted then\n")
    away = tachograph(addresses, "annotate", "deployed 189")
    assert away.returncode == 3
    assert away.stderr.startswith("tachograph: no collector answers at ")
    assert away.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["a\nb"], ["deployed", "--at", "soon"], []], ids=["text", "time", "nothing"])
def test_a_wrong_call_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    from tests.fixtures.running import free_addresses

    wrong = tachograph(free_addresses(tmp_path), "annotate", *arguments)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)


def test_the_fleet_page_shows_what_was_noted(
    clickhouse: Client, clickhouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(clickhouse, [round_of(n, 28 * n, "P128", 28) for n in range(100)])
    noted(clickhouse, 1, "deployed *188*", host_name="node-1")
    noted(clickhouse, 1, "of another", host_name="node-2")
    told_on_page = said(page_opened(FLEET_PAGE, clickhouse_url, monkeypatch, range="all"))
    assert re.search(r"▼ <span title=[^>]*>2026-11-01 00:00</span> deployed \*188\* \(node-1\)", told_on_page)
    assert "of another" not in told_on_page
    st.cache_data.clear()

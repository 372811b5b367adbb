"""Marks: what can be noted, whom it concerns, and where it stands in a timeline."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from queries.annotations.marks import TEXT_MAX, Mark, new_mark, the_mark
from queries.commands.annotate import annotate
from queries.errors import CallError
from queries.postmortem.perfetto import trace_of
from tests.unit.test_postmortem_perfetto import CELL, EPOCH

NOTED = {"host": "", "engine": "", "package": "", "author": "me"}
SETTINGS = SimpleNamespace(clickhouse_url="http://127.0.0.1:1/x", rows_url="http://127.0.0.1:1")


def mark(after_s: float, text: str = "deployed 188", **names: str) -> Mark:
    return Mark("1", datetime.fromtimestamp(EPOCH / 1e9 + after_s, UTC), text, **names)


def test_a_mark_keeps_what_was_said() -> None:
    made = new_mark("  deployed 188 — à 14 h ", "2026-11-01T12:00:00.5+02:00", **NOTED | {"host": "node-1"})
    assert (made.text, made.host_name, made.author) == ("deployed 188 — à 14 h", "node-1", "me")
    assert made.at == datetime(2026, 11, 1, 10, 0, 0, 500_000, UTC)


@pytest.mark.parametrize(
    ("text", "at", "told"),
    [
        ("", "now", "the text is empty"),
        (" \n", "now", "the text is empty"),
        ("two\nlines", "now", r"cannot be shown, U\+000A"),
        ("\x1b[31mred", "now", r"cannot be shown, U\+001B"),
        ("turned \u202eround", "now", r"cannot be shown, U\+202E"),
        ("x" * (TEXT_MAX + 1), "now", "has 201 characters: at most 200 fit"),
        ("deployed", "yesterday", "--at 'yesterday': a time is wanted, like 2026"),
        ("deployed", "2026-13-01", "--at '2026-13-01': "),
        ("deployed", "0001-01-01T00:00:00+14:00", "--at '0001-01-01T00:00:00.14:00': "),
        ("deployed", "-99999999999999d", "--at '-99999999999999d': "),
        ("deployed", "9" * 5000, "--at '9999"),
        ("deployed", "2126-11-01", "--at '2126-11-01' is more than a day ahead"),
    ],
)
def test_what_cannot_be_noted_is_said_in_one_short_line(text: str, at: str, told: str) -> None:
    with pytest.raises(CallError, match=told) as wrong:
        new_mark(text, at, **NOTED)
    assert "\n" not in str(wrong.value)
    assert len(str(wrong.value)) < 300


@pytest.mark.parametrize("name", ["host", "engine", "package", "author"])
def test_names_stand_in_one_line_too(name: str) -> None:
    with pytest.raises(CallError, match=f"--{name} has a character"):
        new_mark("deployed", "now", **NOTED | {name: "a\tb"})


def test_a_day_ahead_is_forgiven_and_no_more() -> None:
    now = datetime(2026, 11, 1, 12, tzinfo=UTC)
    assert new_mark("deployed", "2026-11-02T12:00:00", **NOTED, now=now).at.day == 2
    with pytest.raises(CallError, match="more than a day ahead"):
        new_mark("deployed", "2026-11-02T12:00:01", **NOTED, now=now)


def test_a_mark_is_named_by_how_its_id_begins() -> None:
    marks = [mark(0)._replace(annotation_id=name) for name in ("ab12", "ab34", "cd56")]
    assert the_mark("cd", marks).annotation_id == "cd56"
    for wanted, told in (("ab", "2 marks have an id"), ("x", "no mark has an id"), ("", "no mark has an id")):
        with pytest.raises(CallError, match=told):
            the_mark(wanted, marks)


def test_a_mark_concerns_what_it_names() -> None:
    engine = ("node-1", "engine-1", "main")
    assert mark(0).concerns(*engine)
    assert mark(0, host_name="node-1", engine_package="main").concerns(*engine)
    assert not mark(0, host_name="node-1", engine_package="other").concerns(*engine)
    assert not mark(0, service_instance_id="engine-2").concerns(*engine)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "say what happened"),
        ({"text": "deployed", "listed": True}, "takes no text"),
        ({"at": "now", "listed": True}, "takes no --at"),
        ({"author": "me", "listed": True}, "takes no --author"),
        ({"text": "deployed", "from_": "-1d"}, "--from goes with --list"),
        ({"remove": "ab", "text": "deployed"}, "takes no text"),
        ({"remove": "ab", "listed": True}, "takes no --list"),
        ({"remove": "ab", "host": "node-1"}, "takes no --host"),
    ],
)
def test_no_option_is_taken_and_ignored(arguments: dict[str, str], told: str) -> None:
    with pytest.raises(CallError, match=told):
        annotate(SETTINGS, **arguments)


def test_marks_are_instants_of_the_timeline() -> None:
    marks = (mark(-2460, author="me"), mark(0.05, host_name="gpu-node-1"))
    events = [one for one in trace_of(CELL, None, marks)["traceEvents"] if one.get("cat") == "annotation"]
    assert [(one["ph"], one["ts"], one["name"]) for one in events] == [
        ("i", 0, "41 min before the cell: deployed 188"),
        ("i", 50_000, "deployed 188"),
    ]
    assert events[1]["args"] == {"at": "2026-11-01T00:00:00.050000+00:00", "about": "gpu-node-1", "author": ""}

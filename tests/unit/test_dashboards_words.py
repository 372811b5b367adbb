"""Sentences and tables of cells: pure functions of rows, tested without Streamlit."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pytest

from dashboards.rows import first_row, rows_of
from dashboards.words.cells import beyond_words, cell_label, cell_sentence, fleet_sentence, repeats_sentence
from dashboards.words.markdown import way
from dashboards.words.tables import stuck_table
from dashboards.words.texts import age, clock, escaped, short_instance, span_words, utc_text, with_code
from tests.fixtures.dashboard_rows import BEGIN, cells, inflation, stuck_rows


class TestWords:
    def test_the_fleet_in_a_sentence(self) -> None:
        rows = cells({"stuck": True, "plain_fraction": 0.92}, {"service_instance_id": "instance-2"})
        told = fleet_sentence(rows, "in the last 30 minutes")
        assert told.startswith("**2 engines in the last 30 minutes, 1 stuck in plain decode** (1 cell).")
        assert 'href="cell?engine=instance-1&amp;cell=bench-1" target="_self"' in told
        assert "92 %" in told

    def test_engines_that_are_gone_are_told_from_those_that_are_stuck_now(self) -> None:
        later = {name: BEGIN.ceil("ms") + pd.Timedelta(minutes=10) for name in ("ended_at", "last_received_at")}
        replaced = {"stuck": True, "plain_fraction": 1.0}
        successor = {"service_instance_id": "instance-2", "stuck": True, "plain_fraction": 0.6, **later}
        both = fleet_sentence(cells(replaced, successor), "in the last 30 minutes")
        assert "2 stuck in plain decode** (2 cells of 2 engines; 1 engine gone since). Worst of the others: " in both
        assert "engine=instance-2" in both
        healed = fleet_sentence(cells(replaced, successor | {"stuck": False}), "in the last 30 minutes")
        assert "1 stuck in plain decode** (1 cell; 1 engine gone since). Worst: " in healed
        assert "engine=instance-1" in healed

    def test_a_fine_fleet(self) -> None:
        assert fleet_sentence(cells(), "today") == "**1 engine today, none stuck in plain decode.**"

    @pytest.mark.parametrize(
        ("cell", "expected"),
        [
            ({"plain_fraction": None}, "nothing to judge"),
            ({"has_speculative": False}, "no speculative graph to choose from"),
            ({}, "Fine: 10 %"),
            ({"inflated": True, "turned_s": 4.1, "decisions_turned": 312}, "turned 312 decisions (4.1 s)"),
            ({"whole": False}, "Fine so far: 10 %"),
            ({"stuck": True}, "Inflated estimates are not the cause"),
            ({"stuck": True, "whole": False}, "not judged yet"),
        ],
    )
    def test_a_cell_in_a_sentence(self, cell: dict[str, Any], expected: str) -> None:
        assert expected in cell_sentence(first_row(cells(cell)), None, inflation())

    @pytest.mark.parametrize(
        ("gain", "expected"),
        [(7.9, "would have given 7.9 % more"), (-4.4, "rightly"), (None, "no speculative graph ran")],
    )
    def test_what_the_best_graph_would_have_given(self, gain: float | None, expected: str) -> None:
        stuck = first_row(stuck_rows(gain_percent=gain))
        assert expected in cell_sentence(first_row(cells({"stuck": True})), stuck, inflation().iloc[:0])

    @pytest.mark.parametrize(
        ("since_s", "stretch_s", "whole", "expected"),
        [
            (0.0, 30.0, True, "up to 30.0 s at a stretch, while"),
            (6.0, 29.4, True, "up to 29.4 s at a stretch that goes on after it, while"),
            (-6.0, 29.4, True, "up to 29.4 s at a stretch that began before this cell, while"),
            (-6.0, 60.0, True, "up to 60.0 s at a stretch that began before this cell and goes on after it, while"),
            (6.0, 29.4, False, "up to 29.4 s at a stretch, while"),
        ],
    )
    def test_a_stretch_longer_than_its_cell_says_where_it_goes(
        self, since_s: float, stretch_s: float, whole: bool, expected: str
    ) -> None:
        stuck = first_row(stuck_rows(plain_since=BEGIN + pd.Timedelta(seconds=since_s), plain_stretch_s=stretch_s))
        assert expected in cell_sentence(first_row(cells({"stuck": True, "whole": whole})), stuck, inflation().iloc[:0])

    def test_markdown_of_engines_is_shown_as_it_stands(self) -> None:
        assert escaped("[a](b)*c|d") == r"\[a\]\(b\)\*c\|d"

    @pytest.mark.parametrize(
        ("problem", "shown"),
        [
            ("none at http://h: start one with `tachograph up`, or *", r"none at http\://h\: start one with `tachograph up`, or \*"),
            ("a lone ` stays", r"a lone \` stays"),
            ("empty `` code", "empty  code"),
            ("`a_b` and `c*`", "`a_b` and `c*`"),
        ],
    )  # fmt: skip
    def test_what_to_type_is_set_as_code(self, problem: str, shown: str) -> None:
        assert with_code(problem) == shown

    @pytest.mark.parametrize(
        ("instance", "host", "short"),
        [
            ("engine-50", "gpu-node-000", "engine-50"),
            ("gpu-node-001-run", "gpu-node-001", "run"),
            ("gpu-node-003-1793908800-4018", "gpu-node-003", "…800-4018"),
            ("73a6748e-5b83-4a73-9ce5-2c0275bde263", "gpu-node-024", "…75bde263"),
            ("gpu-node-001", "gpu-node-001", "gpu-node-001"),
            ("i-1", None, "i-1"),
        ],
    )
    def test_runs_on_a_host_are_told_apart(self, instance: str, host: str | None, short: str) -> None:
        assert short_instance(first_row(cells({"service_instance_id": instance, "host_name": host}))) == short

    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [(5, "5 s"), (65, "1 min 5 s"), (3700, "1 h 1 min"), (90000, "1 d 1 h"), (-3, "0 s")],
    )
    def test_ages(self, seconds: int, expected: str) -> None:
        assert age(timedelta(seconds=seconds)) == expected

    def test_times_are_the_viewers(self) -> None:
        zone = timezone(timedelta(hours=5, minutes=30))
        instant = datetime(2026, 11, 1, 20, 0, tzinfo=UTC)
        assert clock(instant, zone, instant) == "01:30:00"
        assert clock(instant, zone, instant + timedelta(days=3)) == "2026-11-02 01:30:00"
        assert utc_text(pd.Timestamp(instant)) == "2026-11-01 20:00:00.000 UTC"


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [
        ("2026-11-29T07:08:07", "2026-11-30T07:08:07", "from 2026-11-29 07:08:07 to 2026-11-30 07:08:07"),
        ("2026-11-30T07:00:00", "2026-11-30T07:08:07", "from 07:00:00 to 07:08:07"),
        ("2026-11-29T07:00:00", "2026-11-29T07:08:07", "from 2026-11-29 07:00:00 to 2026-11-29 07:08:07"),
        (None, "2026-11-30T07:08:07", "to 07:08:07"),
        (None, "2026-11-29T07:08:07", "to 2026-11-29 07:08:07"),
        ("2026-11-30T07:08:07", None, "from 07:08:07 on"),
    ],
)
def test_a_span_bears_its_date_at_both_ends(since: str | None, until: str | None, words: str) -> None:
    ends = [None if end is None else datetime.fromisoformat(end).replace(tzinfo=UTC) for end in (since, until)]
    assert span_words(*ends, UTC, datetime(2026, 11, 30, 7, 18, tzinfo=UTC)) == words


def test_days_of_a_span_are_the_viewers() -> None:
    """Both are of one day in UTC, and of two in the viewer's zone."""
    zone, now = timezone(timedelta(hours=5, minutes=30)), datetime(2026, 11, 30, 20, tzinfo=UTC)
    told = span_words(now - timedelta(hours=3), now, zone, now)
    assert told == "from 2026-11-30 22:30:00 to 2026-12-01 01:30:00"


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [
        ("2026-11-01T00:00:00+00:00", "2026-11-01T00:01:00+00:00", ""),
        ("2026-11-01T00:00:00+00:00", "2026-11-01T00:00:20+00:00", "end after it are shown and counted whole."),
        ("2026-11-01T00:00:10+00:00", "2026-11-01T00:01:00+00:00", "begin before it are shown and counted whole."),
        ("2026-11-01T00:00:10+00:00", "2026-11-01T00:00:20+00:00", "begin before it or end after it are shown"),
        ("", "2026-11-01T00:00:20+00:00", "that end after it"),
    ],
)
def test_cells_beyond_a_held_time_are_told_of(since: str, until: str, words: str) -> None:
    told = beyond_words(cells(), since, until)
    assert words in told
    assert bool(told) == bool(words)


def test_only_cells_that_still_run_at_the_edge_of_a_held_time_are_said_to_grow() -> None:
    now = datetime.now(UTC)
    until = (now - timedelta(seconds=20)).isoformat()
    running = cells({"started_at": now - timedelta(seconds=40), "ended_at": now - timedelta(seconds=10)})
    assert "counted whole, and their figures grow until" in beyond_words(running, "", until)
    assert "grow" not in beyond_words(cells(), "", "2026-11-01T00:00:20+00:00")


def test_an_instance_without_a_name_is_said_to_have_none() -> None:
    rows = cells({"service_instance_id": ""})
    told = repeats_sentence(rows[["service_instance_id"]], rows)
    assert told.startswith("an instance without a name: submission numbers come more than once.")


def test_a_way_opens_in_its_place_and_breaks_no_table() -> None:
    assert way("a", 'cell?engine="|', 'x|"y') == (
        '<a href="cell?engine=&quot;&#124;" target="_self" title="x&#124;&quot;y">a</a>'
    )


def test_the_table_of_stuck_cells_links_each() -> None:
    table = stuck_table(stuck_rows(cell_arm="a|b", gain_percent=None), UTC).splitlines()
    assert len(table) == 3
    assert table[0].startswith("| Cell | Plain, % of decoding | Engine | Cause |"), "a telephone shows no more"
    assert ">bench-1</a>" in table[2]
    assert 'href="cell?engine=instance-1&amp;cell=bench-1" target="_self"' in table[2]
    assert r"a\|b" in table[2]


def test_what_tells_engines_of_a_host_apart_is_not_broken_into_lines() -> None:
    table = stuck_table(stuck_rows(service_instance_id="node-1-1793908800-4018"), UTC)
    assert ' / <span style="white-space: nowrap">…800-4018</span> |' in table


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "2026-11-01 00:00:00 · node-1 · pkg · c32 / instance-1 · bench-1 · 92 % plain decode"),
        ({"cell": "1793908800"}, "2026-11-01 00:00:00 · node-1 · pkg · c32 / instance-1 · 92 % plain decode"),
        ({"cell": "1793908800", "plain_fraction": None}, "2026-11-01 00:00:00 · node-1 · pkg · c32 / instance-1"),
    ],
    ids=["named", "named by when it began", "without decoding"],
)
def test_a_cell_to_choose_is_named_by_what_a_person_knows(changes: dict[str, Any], label: str) -> None:
    [row] = rows_of(cells({"plain_fraction": 0.92, **changes}))
    assert cell_label(row, UTC) == label


def test_a_cell_to_choose_is_one_line_whatever_its_names() -> None:
    long = dict.fromkeys(("cell", "host_name", "engine_package", "engine_recipe", "service_instance_id"), "x" * 2000)
    [row] = rows_of(cells(long))
    assert len(cell_label(row, UTC)) < 240


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({}, "inflated estimates"),
        ({"inflated": False}, "not the estimates"),
        ({"inflated": False, "ended_at": pd.Timestamp("2200-01-01", tz=UTC)}, "not judged yet"),
        ({"inflated": False, "whole": True}, "not the estimates"),
        ({"inflated": False, "whole": True, "gain_percent": None}, "not known"),
        ({"inflated": False, "whole": False}, "not judged yet"),
        ({"inflated": True, "whole": False}, "inflated estimates"),
    ],
    ids=["found", "asked", "running", "whole", "nothing to compare", "partial", "found early"],
)
def test_that_estimates_are_not_the_cause_is_told_of_whole_cells_only(changes: dict[str, Any], cause: str) -> None:
    assert stuck_table(stuck_rows(**changes), UTC).splitlines()[2].split(" | ")[3] == cause

"""What `tachograph top` draws, from rows written by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.cells import cell_len

from engine_hooks.commands.terminal import WIDTH_ELSEWHERE
from queries.annotations.marks import Mark
from queries.clocks_ahead import age_of
from queries.top.fleet import Sort, arranged, engines_of
from queries.top.frame import LEGEND, NAME_COLUMN_MAX, Size, View, frame
from queries.top.seen import Seen, range_for

START = datetime(2026, 11, 1, tzinfo=UTC)
NOW = START + timedelta(minutes=10)


def row(engine: str, begin_s: float, length_s: float = 29.9, ahead_s: float = 0.0, **changes: Any) -> dict[str, Any]:
    """One row of `cells`, of an engine whose clock is ahead by so much."""
    started = START + timedelta(seconds=begin_s)
    return {
        "service_instance_id": engine,
        "cell": str(begin_s),
        "host_name": engine,
        "engine_package": "main",
        "engine_recipe": "c32",
        "started_at": started.replace(tzinfo=None),
        "ended_at": (started + timedelta(seconds=length_s)).replace(tzinfo=None),
        "last_received_at": (started + timedelta(seconds=length_s - ahead_s)).replace(tzinfo=None),
        "has_speculative": True,
        "plain_fraction": 0.05,
        "stuck": False,
        "inflated": False,
        "turned_s": 0.0,
        "tokens_per_s": 1234.5,
    } | changes


def seen(*rows: dict[str, Any], **changes: Any) -> Seen:
    return Seen(tuple(engines_of(rows)), at=NOW)._replace(**changes)


def lines(shown: Seen, width: int = 80, height: int | None = 23, **view: Any) -> list[str]:
    return frame(shown, View(**view), Size(width, height), NOW).plain.split("\n")


def line_of(shown: Seen, engine: str, **view: Any) -> str:
    return next(line for line in lines(shown, **view)[2:] if line[2:].startswith(engine))


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({}, "S "),
        ({"plain_fraction": 0.3}, "s "),
        ({"plain_fraction": 0.31, "stuck": True}, "p!"),
        ({"plain_fraction": 1.02, "stuck": True, "inflated": True}, "P*"),
        ({"plain_fraction": 0.2, "inflated": True}, "s^"),
        ({"plain_fraction": 1.0, "has_speculative": False}, "· "),
        ({"plain_fraction": None}, "· "),
    ],
)
def test_a_cell_is_a_letter_and_a_flag(changes: dict[str, Any], drawn: str) -> None:
    assert lines(seen(row("a", 0, **changes)))[4].endswith(drawn)


def test_time_runs_to_the_right_and_gaps_stay_gaps() -> None:
    shown = seen(row("a", 0), row("a", 90, plain_fraction=1.0), row("b", 60, 65), row("b", 30))
    assert line_of(shown, "a").endswith("S     P ")
    assert line_of(shown, "b").endswith("  S S S "), "a cell of 65 s takes two places"


def test_of_several_cells_in_a_place_the_worst_is_drawn() -> None:
    shown = seen(*(row("a", second, 1, plain_fraction=1.0 if second == 3 else 0.0) for second in range(8)))
    assert line_of(shown, "a").endswith("  P ")


def test_a_silent_engine_says_for_how_long() -> None:
    shown = seen(row("a", 570), row("b", 0))
    assert "-10 min" in line_of(shown, "b")
    assert "1,234" in line_of(shown, "a")


YEARS_S = 3 * 365 * 86_400


@pytest.mark.parametrize(("ahead_s", "words"), [(7200, "clock 2 h ahead"), (YEARS_S, "clock 1,095 d ahead")])
def test_a_clock_that_is_ahead_hides_nobody_and_is_named(ahead_s: float, words: str) -> None:
    others = [row(name, second) for name in ("a", "b") for second in range(0, 120, 30)]
    alone = seen(*others)
    shown = seen(*others, *(row("wrong", ahead_s + second, ahead_s=ahead_s) for second in range(0, 120, 30)))
    assert lines(shown)[0] == "tachograph top  3 engines, 0 stuck, 0 inflated  by lost  00:01:59 UTC"
    assert [line_of(shown, name) for name in ("a", "b")] == [line_of(alone, name) for name in ("a", "b")]
    assert lines(shown)[1].startswith(f"! wrong: {words}")
    assert line_of(shown, "wrong").endswith(words)
    assert "1,234" in line_of(shown, "wrong")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(119.4, "119 s"), (150, "2 min"), (7199.5, "2 h"), (7100, "118 min"), (172_799, "2 d"), (90_000, "25 h")],
)
def test_an_age_is_told_in_its_largest_unit(seconds: float, words: str) -> None:
    assert age_of(seconds) == words


def test_of_a_clock_that_is_hardly_ahead_the_past_is_drawn() -> None:
    shown = seen(*(row(name, second) for name in ("a", "b") for second in range(0, 120, 30)),
                 *(row("wrong", second + 60, ahead_s=60) for second in range(0, 120, 30)))  # fmt: skip
    assert line_of(shown, "a").endswith("S S S S ")
    assert line_of(shown, "wrong").endswith(" " * 4 + "S S ")
    assert lines(shown)[1].startswith("! wrong: clock 60 s ahead")


def test_a_cell_of_years_is_drawn_as_far_as_it_is_seen() -> None:
    """A clock that is set to another year amid a cell."""
    shown = seen(row("a", 0), row("a", 30), row("jumped", 0, YEARS_S, ahead_s=YEARS_S - 30))
    assert line_of(shown, "jumped").endswith("S S ")


def test_a_clock_that_was_mended_is_not_behind() -> None:
    shown = seen(row("a", 570), row("b", 7800, ahead_s=7500, tokens_per_s=1.0), row("b", 570))
    assert "1,234" in line_of(shown, "b")
    assert lines(shown)[1] == ""


def test_whose_clocks_are_ahead_is_told_once_a_host_with_what_was_noted() -> None:
    rows = [row(f"{host}-{n}", 7200, ahead_s=7200 + 3600 * n, host_name=host) for host in ("x", "y") for n in range(2)]
    shown = seen(row("a", 0), *rows, marks=(Mark("1", NOW, "deployed"),))
    assert lines(shown)[1] == "! x: clock 3 h ahead, and 1 host more  ▼ 00:10:00 deployed"


def test_what_lost_the_most_comes_first() -> None:
    rows = [row("calm", 0), row("stuck", 0, stuck=True), row("loser", 0, turned_s=3.0), row("loser", 30, turned_s=2.0)]
    engines = engines_of(rows)
    assert [one.host_name for one in arranged(engines, Sort.LOST, "")] == ["loser", "stuck", "calm"]
    assert engines[2].lost_s == 5
    assert [one.host_name for one in arranged(engines, Sort.HOST, "L")] == ["calm", "loser"]
    slow = engines_of([row("fast", 0), row("none", 0, tokens_per_s=None), row("slow", 0, tokens_per_s=9.0)])
    assert [one.host_name for one in arranged(slow, Sort.SLOWEST, "")] == ["slow", "fast", "none"]


@pytest.mark.parametrize("size", [(80, 23), (200, 60), (30, 5), (10, 3), (1, 1)], ids=str)
def test_a_frame_never_leaves_its_terminal(size: tuple[int, int]) -> None:
    rows = [
        row(f"node-機械-{number:03}\x1b[2J\n", 30 * (number % 40), engine_package="p" * 90) for number in range(200)
    ]
    mark = Mark("1", NOW, "deployed " + "x" * 190)
    for problem in ("", "no ClickHouse answers " * 20):
        drawn = lines(seen(*rows, marks=(mark,), problem=problem), *size, headline="word " * 100, host="機械")
        assert len(drawn) <= size[1]
        assert max(map(cell_len, drawn)) <= size[0]
        assert all(line.isprintable() for line in drawn)


def test_the_selected_engine_is_always_on_the_screen() -> None:
    shown = seen(*(row(f"node-{number:03}", 0) for number in range(200)))
    for number in (0, 14, 15, 16, 199):
        assert any(line.startswith(f"> node-{number:03}") for line in lines(shown, engine=f"node-{number:03}"))
    assert len(lines(shown, height=None)) == 200 + 8, "a script gets every engine"


def test_a_selection_that_is_gone_falls_back() -> None:
    shown = seen(row("a", 0), row("a", 30))
    assert any(line.startswith("00:00:30 · a · cell 30") for line in lines(shown, engine="gone", cell="gone"))


def test_the_state_says_what_is_wrong_with_the_age_of_what_is_shown() -> None:
    shown = seen(row("a", 0), at=NOW - timedelta(seconds=42))
    assert lines(shown._replace(problem="no ClickHouse answers"))[1] == "! 42 s old: no ClickHouse answers"
    assert lines(shown, waiting_s=20.0)[1] == "! 42 s old: ClickHouse has not answered for 20 s"
    assert lines(shown, waiting_s=2.0)[1] == ""
    assert lines(Seen(), place="h:1/db")[3] == "Asking ClickHouse at h:1/db …"
    assert lines(Seen(at=NOW))[3].startswith("No graph executions are stored yet")
    assert lines(shown, host="zzz")[3].startswith("No host's name contains 'zzz'")


def test_a_headline_takes_two_lines_at_most() -> None:
    drawn = lines(seen(row("a", 0)), width=40, headline="one two three four five six seven eight nine ten " * 3)
    assert drawn[-3].startswith("one two three")
    assert drawn[-2].endswith("…")
    assert len(drawn) == 23


LONG_NAMES = ("demo-fooled-1796022211-4711", "demo-fooled-1796022244-4712", "h" * 200 + "-1", "h" * 200 + "-2")


def test_off_a_terminal_no_name_is_cut() -> None:
    shown = seen(*(row(name, 0, engine_package="p" * 90 + str(place)) for place, name in enumerate(LONG_NAMES)))
    mark = Mark("1", NOW, "deployed " + "x" * 190)
    drawn = lines(shown._replace(marks=(mark,)), WIDTH_ELSEWHERE, None)
    for place, name in enumerate(LONG_NAMES):
        (line,) = [one for one in drawn if one[2:].startswith(f"{name} ")]
        assert f" {'p' * 90}{place} " in line
    assert mark.text in drawn[1]
    assert any(line.startswith("00:00:00 · ") and " · 1,234 tokens/s" in line for line in drawn)
    assert not any("…" in line for line in drawn)


def test_an_overlong_name_takes_its_room_in_no_other_row() -> None:
    """It would move what lies in every row by 250 columns."""
    overlong = ["a" + "h" * 2000 + str(place) for place in range(2)]
    drawn = lines(seen(*(row(name, 0) for name in ("node-1", *LONG_NAMES, *overlong))), WIDTH_ELSEWHERE, None)
    axis, ordinary = drawn[2], [one for one in drawn[4:] if one[2:].startswith(("node-1 ", "demo-"))]
    assert len(ordinary) == 3
    places = {one.index(" main ") for one in ordinary}
    assert places == {axis.index("package") - 1}
    assert max(places) <= 2 + NAME_COLUMN_MAX
    names = [one[2:].split()[0] for one in drawn if one[2:].startswith("ahh")]
    assert len(set(names)) == 2
    assert {len(name) for name in names} == {256}


@pytest.mark.parametrize("width", [40, 100, 200])
def test_what_is_printed_on_a_terminal_stays_in_its_width(width: int) -> None:
    packages = ("main", "p" * 90)
    drawn = lines(seen(*(row(LONG_NAMES[-1], 0, engine_package=one) for one in packages)), width, None)
    assert max(map(len, drawn)) <= width


def test_what_is_printed_is_no_wider_than_what_there_is() -> None:
    """Ten minutes for a new fleet, and as far back as there are cells."""
    axis = 2 + 8 + 1 + 7 + 1 + 8 + 1 + 7 + 1
    short, long = seen(row("a", 570)), seen(row("a", 0), row("a", 1770))
    assert len(lines(short, WIDTH_ELSEWHERE, None)[2]) == axis + 2 * 20
    assert len(lines(long, WIDTH_ELSEWHERE, None)[2]) == axis + 2 * 60


def test_on_a_narrow_terminal_names_of_one_kind_still_differ() -> None:
    drawn = lines(seen(*(row(name, 0) for name in LONG_NAMES)))
    names = {line[2:22] for line in drawn[4:8]}
    assert len(names) == 4
    assert "demo-foole…2211-4711" in names


def test_terminals_of_nearly_the_same_width_ask_the_same() -> None:
    assert [range_for(slots) for slots in (1, 18, 20, 21, 60, 61, 500)] == [600, 600, 600, 1800, 1800, 3600, 3600]
    assert len(LEGEND) <= 80

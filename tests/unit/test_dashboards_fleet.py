"""Large fleets: stretches instead of cells, pages instead of scrolling, and the order of rows."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from dashboards.charts.fleet_grid import COMPACT, SHORT_WORD_PX, flags_of, fleet_grid, grid_rows, mark
from dashboards.questions import fleet
from dashboards.questions.fleet import Filters
from dashboards.questions.ranges import RANGES, TimeRange, held_range
from dashboards.reading.answers import Answer
from dashboards.words.cells import fleet_sentence
from dashboards.words.tables import stretches_table, stuck_table
from queries.catalogue import find
from tests.fixtures.dashboard_rows import BEGIN, cells, stuck_rows


def engines(count: int, cells_each: int, hours: float = 24.0) -> pd.DataFrame:
    """Rows of the query `engines`."""
    return pd.DataFrame(
        {
            "service_instance_id": [f"i-{number}" for number in range(count)],
            "host_name": [f"node-{number % 10}" for number in range(count)],
            "engine_package": "pkg", "engine_recipe": "c32", "cells": cells_each,
            "first_seen": BEGIN, "last_seen": BEGIN + pd.Timedelta(hours=hours),
            "last_received_at": BEGIN.floor("ms") + pd.Timedelta(hours=hours),
        }
    )  # fmt: skip


def stretches(count: int) -> pd.DataFrame:
    """Rows of the query `fleet_stretches`: every second engine has a stuck one, the last lost most."""
    rows = [
        {
            "service_instance_id": f"i-{number:03}", "cell": "c", "host_name": f"node-{number}", "engine_package": "pkg",
            "engine_recipe": "c32", "cell_arm": "", "started_at": BEGIN, "ended_at": BEGIN + pd.Timedelta("30min"),
            "last_received_at": BEGIN.floor("ms") + pd.Timedelta("31min"), "cells": 60, "cells_stuck": 2 * (number % 2), "stuck": number % 2 == 1, "has_speculative": True,
            "plain_fraction": 0.5, "plain_stuck_s": 100.0 * number * (number % 2), "executions": 90_000,
            "tokens_per_s": 1000.0 + 10 * number,
        }
        for number in range(count)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What was asked of the catalogue; every answer has rows of two concurrencies."""
    questions: list[tuple[str, dict[str, Any]]] = []

    def answering(question: str, **values: Any) -> Answer:
        questions.append((question, values))
        return Answer(cells({}, {"cell_concurrency": 64}, {"cell_concurrency": None}))

    monkeypatch.setattr(fleet, "answer", answering)
    monkeypatch.setattr(fleet, "cells_now", lambda _, **values: answering("cells", **values))
    monkeypatch.setattr(fleet, "stuck_now", lambda _, **values: answering("stuck_plain", **values))
    monkeypatch.setattr(fleet, "slow_answer", answering)
    return questions


class TestWhatIsAsked:
    def test_few_cells_are_asked_for_one_by_one(self, asked: list[tuple[str, dict[str, Any]]]) -> None:
        found = fleet.fleet(engines(20, 100), Filters((("from_", "-1h"),), ()))
        assert asked == [("cells", {"from_": "-1h"})]
        assert found.stretch_s == 0
        assert len(found.told.rows) == 3

    def test_filters_on_few_cells_ask_nothing_else(self, asked: list[tuple[str, dict[str, Any]]]) -> None:
        named = (("host", "node-1"), ("package", "pkg"), ("recipe", "c32"), ("arm", "after"))
        for count in range(len(named) + 1):
            fleet.fleet(engines(20, 100), Filters((("from_", "-1h"),), named[:count], 64))
        assert {str(question) for question in asked} == {str(("cells", {"from_": "-1h"}))}

    def test_filters_on_many_stuck_cells_are_asked_by_themselves(
        self, asked: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fleet, "STUCK_MAX", 3)
        assert len(fleet.stuck_cells(Filters((), ())).rows) == 3
        assert fleet.stuck_cells(Filters((), (("arm", "after"),))).rows.empty
        assert [values for _, values in asked] == [{"limit": 3}, {"limit": 3}, {"limit": 3, "arm": "after"}]

    def test_a_day_of_a_fleet_is_asked_for_in_stretches(self, asked: list[tuple[str, dict[str, Any]]]) -> None:
        found = fleet.fleet(engines(200, 2880), Filters((("from_", "-24h"),), (), 64))
        assert asked == [("fleet_stretches", {"from_": "-24h", "stretch_s": 1800, "concurrency": 64})]
        assert found.stretch_s == 1800

    def test_a_clock_that_is_ahead_makes_no_stretch_longer(self, asked: list[tuple[str, dict[str, Any]]]) -> None:
        rows = engines(200, 2880)
        rows.loc[7, "last_seen"] += pd.Timedelta("1095D")
        assert fleet.fleet(rows, Filters((("from_", "-24h"),), ())).stretch_s == 1800
        assert [values["stretch_s"] for _, values in asked] == [1800]

    def test_one_host_of_the_fleet_is_asked_for_by_cells(self, asked: list[tuple[str, dict[str, Any]]]) -> None:
        fleet.fleet(engines(20, 2880, 0.5).assign(cells=600), Filters((), (("host", "node-3"),)))
        assert [question for question, _ in asked] == ["cells"]

    @pytest.mark.usefixtures("asked")
    def test_by_concurrency(self) -> None:
        assert list(fleet.fleet(engines(1, 1), Filters((), (), 64)).told.rows.cell_concurrency) == [64]

    def test_no_engine_is_no_fault(self, asked: list[tuple[str, dict[str, Any]]]) -> None:
        fleet.fleet(pd.DataFrame(), Filters((), (("host", "x"),)))
        assert len(asked) == 1

    @pytest.mark.parametrize(("hours", "length_s"), [(0.5, 60), (24, 1800), (168, 14_400), (24 * 5000, 604_800)])
    def test_stretches_are_of_round_lengths(self, hours: float, length_s: int) -> None:
        assert fleet.stretch_of(timedelta(hours=hours)) == length_s


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (Filters((), ()), ["a", "b", "c"]),
        (Filters((), (("host", "one"),)), ["a", "b"]),
        (Filters((), (("host", "one"), ("arm", "after"))), ["b"]),
        (Filters((), (("package", "new"),)), ["c"]),
        (Filters((), (("recipe", "other"),)), []),
        (Filters((), (), 64), ["b"]),
    ],
)
def test_what_the_filters_leave(filters: Filters, left: list[str]) -> None:
    rows = cells(
        {"cell": "a", "host_name": "one", "cell_arm": "before", "cell_concurrency": None},
        {"cell": "b", "host_name": "one", "cell_arm": "after", "cell_concurrency": 64},
        {"cell": "c", "host_name": "two", "cell_arm": "", "engine_package": "new"},
    )
    assert list(fleet.narrowed(Answer(rows), filters).rows.cell) == left
    assert fleet.narrowed(Answer(), filters).rows.empty


@pytest.mark.parametrize(
    ("time", "left"),
    [
        ((("from_", "-30m"),), ["alive", "ahead"]),
        ((("from_", "-2h"),), ["alive", "ahead", "gone"]),
        ((("last_s", 0),), ["alive", "ahead", "gone"]),
        ((("from_", "2026-11-01T00:30"), ("to", "2026-11-09")), ["alive", "ahead", "gone"]),
    ],
    ids=["live", "longer", "all", "held"],
)
def test_an_engine_that_is_gone_is_not_kept_by_a_clock_that_was_ahead(
    time: tuple[tuple[str, str | int], ...], left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read an hour after the first one was heard of last, however long ago that reading is by now."""
    later, days = pd.Timedelta("1h"), pd.Timedelta("7D")
    heard, ahead = cells().last_received_at[0] + later, {"started_at": BEGIN + days, "ended_at": BEGIN + days}
    rows = cells(
        {"service_instance_id": "alive", "started_at": BEGIN + later, "last_received_at": heard},
        {"service_instance_id": "ahead", **ahead},
        {"service_instance_id": "ahead", **ahead, "last_received_at": heard},
        {"service_instance_id": "gone", **ahead},
    )
    told = Answer(rows, heard.to_pydatetime())
    monkeypatch.setattr(fleet, "cells_now", lambda *_, **__: told)
    by_cell = fleet.fleet(engines(2, 60), Filters(time, ())).told.rows
    assert list(by_cell.service_instance_id.unique()) == left
    monkeypatch.setattr(fleet, "slow_answer", lambda *_, **__: told)
    in_stretches = fleet.fleet(engines(200, 2880), Filters(time, ())).told.rows
    assert list(in_stretches.service_instance_id.unique()) == left


@pytest.mark.parametrize(
    ("time_range", "offered"),
    [
        (RANGES["30 min"], ["node-0"]),
        (RANGES["12 h"], ["node-0"]),
        (RANGES["all"], ["node-0", "node-1"]),
        (held_range(BEGIN, BEGIN + timedelta(days=8), ""), ["node-0", "node-1"]),
    ],
    ids=["live", "longer", "all", "held"],
)
def test_filters_do_not_offer_what_an_engine_that_is_gone_had(time_range: TimeRange, offered: list[str]) -> None:
    """The second one's clock was a week ahead, and by that its last execution is yet to come."""
    rows = engines(2, 60)
    heard = rows.last_received_at[0]
    rows = rows.assign(
        last_received_at=[heard, heard - pd.Timedelta("1D")], last_seen=[heard, heard + pd.Timedelta("6D")]
    )
    told = Answer(rows, heard.to_pydatetime())
    assert list(fleet.engines_shown(told, time_range).host_name) == offered


@pytest.mark.parametrize("query", ["live_stuck", "stuck_plain"])
def test_stuck_cells_are_listed_by_what_their_question_tells(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its columns, and no others: the page asks it in a time up to now, filtered and not."""
    told = Answer(stuck_rows().reindex(columns=[column.name for column in find(query).columns]), datetime.now(UTC))
    monkeypatch.setattr(fleet, "stuck_now", lambda *_, **__: told)
    for named in ((), (("host", told.rows.host_name[0]),)):
        assert not fleet.stuck_cells(Filters((("from_", "-30m"),), named)).rows.empty


class TestOrder:
    def test_what_is_lost_comes_first(self) -> None:
        assert fleet.ordered(stretches(6), fleet.WORST) == ["i-005", "i-003", "i-001", "i-000", "i-002", "i-004"]
        assert fleet.ordered(stretches(3), fleet.NAME) == ["i-000", "i-001", "i-002"]
        assert fleet.ordered(stretches(3), fleet.SPEED) == ["i-000", "i-001", "i-002"]

    def test_of_cells_stuck_before_inflated(self) -> None:
        rows = cells(
            {"service_instance_id": "fine", "plain_s": 99.0},
            {"service_instance_id": "inflated", "inflated": True, "turned_s": 60.0},
            {"service_instance_id": "stuck", "stuck": True, "plain_s": 20.0},
        )
        assert fleet.ordered(rows, fleet.WORST) == ["stuck", "inflated", "fine"]

    @pytest.mark.parametrize("unknown", [None, float("nan"), pd.NA])
    @pytest.mark.parametrize("extended", [False, True])
    @pytest.mark.parametrize(
        ("order", "expected"),
        [
            (fleet.WORST, ["y-stuck", "x-inflated", "w-turned-a-little", "z-stuck-a-little", "a-new", "b-fine", "c-begun"]),
            (fleet.NAME, ["a-new", "b-fine", "c-begun", "w-turned-a-little", "x-inflated", "y-stuck", "z-stuck-a-little"]),
            (fleet.SPEED, ["z-stuck-a-little", "y-stuck", "x-inflated", "w-turned-a-little", "b-fine", "c-begun", "a-new"]),
        ],
    )  # fmt: skip
    def test_what_is_not_known_is_no_loss(self, order: str, expected: list[str], unknown: Any, extended: bool) -> None:
        rows = cells(
            {"service_instance_id": "a-new", "plain_s": unknown, "turned_s": unknown, "tokens_per_s": unknown},
            {"service_instance_id": "b-fine", "plain_s": 99.0, "tokens_per_s": 500.0},
            {"service_instance_id": "c-begun", "turned_s": unknown, "inflated": unknown, "tokens_per_s": 600.0},
            {"service_instance_id": "w-turned-a-little", "turned_s": 2.0, "inflated": True, "tokens_per_s": 400.0},
            {"service_instance_id": "x-inflated", "turned_s": 60.0, "inflated": True, "tokens_per_s": 300.0},
            {"service_instance_id": "y-stuck", "stuck": True, "plain_s": 20.0, "turned_s": unknown, "tokens_per_s": 200.0},
            {"service_instance_id": "z-stuck-a-little", "stuck": True, "turned_s": unknown, "tokens_per_s": 100.0},
        )  # fmt: skip
        rows["inflated"] = rows.inflated.astype("boolean")
        assert fleet.ordered(rows.convert_dtypes() if extended else rows, order) == expected

    def test_rows_stand_in_that_order(self) -> None:
        drawn = grid_rows(stretches(4), ["i-003", "i-000"])
        assert list(drawn.service_instance_id) == ["i-003", "i-000"]
        assert list(drawn.place) == [0, 1]

    def test_the_chart_is_told_the_order(self) -> None:
        """By itself it keeps rows where they first were, and puts new ones anywhere."""
        rows = [layer["encoding"]["y"]["sort"] for layer in fleet_grid(stretches(4)).to_dict()["layer"]]
        assert {str(one) for one in rows} == {str({"field": "place", "op": "min", "order": "ascending"})}


class TestOneReading:
    """The stuck cells are listed as the sentence counts them and the chart colours them."""

    def test_what_is_stuck_is_told_of_one_reading(self) -> None:
        at_first = cells(
            {"cell": "a", "stuck": True, "plain_fraction": 0.54, "tokens_per_s": 2311.0},
            {"cell": "b", "stuck": True, "plain_fraction": 0.9},
            {"cell": "c", "stuck": False},
        )
        a_moment_later = stuck_rows(plain_fraction=0.7, tokens_per_s=1.0)
        details = pd.concat([a_moment_later.assign(cell=name) for name in ("a", "c")])
        told = fleet.told_of(at_first, details)
        assert list(told.cell) == ["b", "a"]
        assert list(told.plain_fraction) == [0.9, 0.54]
        assert list(told.tokens_per_s) == [2400.0, 2311.0]
        assert list(told.best_speculative_graph) == ["", "P128"]
        assert told.gain_percent.isna().tolist() == [True, False]
        assert f"({len(told)} cells)" in fleet_sentence(at_first, "now")
        assert len(stuck_table(told, UTC).splitlines()) == 2 + len(told)

    def test_without_details_they_are_listed_all_the_same(self) -> None:
        as_read = cells({"stuck": True}).astype({"service_instance_id": "string", "cell": "string"})
        for details in (pd.DataFrame(), stuck_rows().iloc[:0]):
            told = fleet.told_of(as_read, details)
            assert "| 10 |" in stuck_table(told, UTC).splitlines()[2]
            assert fleet.told_of(as_read.assign(stuck=False), details).empty


def test_where_most_is_lost() -> None:
    worst = fleet.worst_stretches(stretches(50))
    assert list(worst.service_instance_id[:2]) == ["i-049", "i-047"]
    assert len(worst) == fleet.STRETCHES_LISTED
    told = stretches_table(worst, UTC).splitlines()
    assert "cell?engine=i-049&amp;cell=c" in told[2]
    assert "| 60 | 2 | 4,900 | 1,490 |" in told[2]


class TestPages:
    def test_two_hundred_engines_take_five_screens(self) -> None:
        names = [f"{number}" for number in range(200)]
        assert fleet.pages_of(names) == 5
        assert [one for page in range(1, 6) for one in fleet.on_page(names, page)] == names
        assert fleet.on_page(names, 9) == fleet.on_page(names, 5)
        assert fleet.ENGINES_A_PAGE * COMPACT.height_px <= 800

    def test_a_page_has_one(self) -> None:
        assert fleet.pages_of([]) == 1

    def test_the_chart_of_a_page(self) -> None:
        rows = stretches(50)
        spec = fleet_grid(rows, fleet.on_page(fleet.ordered(rows, fleet.WORST), 1), COMPACT).to_dict()
        (data,) = spec["datasets"].values()
        assert len({row["row"] for row in data}) == 40
        assert spec["height"] == {"step": COMPACT.height_px}


def test_the_sentence_counts_stuck_cells_and_not_stretches() -> None:
    told = fleet_sentence(stretches(4), "in the last 24 hours")
    assert "4 engines in the last 24 hours, 2 stuck in plain decode** (4 cells of 2 engines)" in told


def test_what_the_marks_mean() -> None:
    words = set(re.findall(r"\w+", fleet.legend_words(0).partition("a cell says so: ")[2].partition(".")[0]))
    both = flags_of(True, True)
    assert {*both, *mark(both, SHORT_WORD_PX)} == words - {"or"}, "whatever stands in a cell"
    assert "Dark grey: no speculative graph" in fleet.legend_words(0)
    assert "Each field is 30 minutes of cells" in fleet.legend_words(1800)
    assert "1 hour" in fleet.legend_words(3600)

"""The page Compare in every state, its words and its charts."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client

from dashboards.charts.arm_cells import arm_cells, cell_rows
from dashboards.charts.arm_shifts import arm_shifts, extent, shift_row
from dashboards.links import COMPARE_PAGE
from dashboards.questions.arms import USUAL_ARMS, USUAL_ROWS, arms_stored, comparable_arms, usual_arms, usual_rows
from dashboards.reading import outcomes
from dashboards.words.comparisons import comparison_sentence, comparison_table
from dashboards.words.refusals import refusal_words
from queries.compare.comparison import Comparison, Metric, Verdict, compared
from tests.browser.two_arms import two_arms_store
from tests.fixtures.arm_tables import Table, cell_at, cells_of_table, synthetic_noises
from tests.fixtures.databases import database, read_only_url
from tests.fixtures.pages import NOWHERE, away, checked, page_opened, said


@pytest.fixture(scope="module")
def arms_url(store: Client, data_dir: Path) -> Iterator[str]:
    with two_arms_store(store, data_dir) as url:
        yield url


@pytest.fixture(scope="module")
def published() -> Comparison:
    """Two arms, the second 3 % faster on four hosts."""
    return compared(cells_of_table(Table(synthetic_noises(3), gain_percent=3.0), seed=1))


class TestPage:
    def test_the_verdict_of_each_host(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(COMPARE_PAGE, arms_url, monkeypatch)
        assert "▲ after is better than before:" in app.success[0].value
        assert "stuck cells 5 → 0" in app.success[0].value
        text = said(app)
        rows = {line.split(" | ")[0]: line for line in text.splitlines() if line.startswith("| gpu-node")}
        assert "▲ better" in rows["| gpu-node-001"]
        assert "≈ within noise" in rows["| gpu-node-002"]
        assert "left out, lost 10 executions, 390 stored: bench-2-27 of gpu-node-002 (before)" in text
        assert len(app.get("vega_lite_chart")) == 2
        assert app.get("download_button")

    def test_arms_rows_and_metric_live_in_the_url(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(
            COMPARE_PAGE, arms_url, monkeypatch, before="after", after="before", by="host", metric="plain fraction"
        )
        assert app.selectbox(key="before").value == "after"
        assert app.button_group(key="by").value == ["host"]
        assert "plain fraction shifts by" in said(app)
        assert "▼ before is worse than after" in said(app) or "cannot be told" in said(app)

    def test_an_arm_without_cells(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(COMPARE_PAGE, arms_url, monkeypatch, after="elsewhere")
        assert "Nothing to compare: no cells of arm 'elsewhere': there are after, before." in said(app)
        assert not app.get("vega_lite_chart")

    def test_arms_apart_name_what_to_deselect(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def apart(*_: object, **__: object) -> Comparison:
            cells = [cell_at("before", 0, 100.0, package="main"), cell_at("after", 1, 100.0, package="main-fix")]
            return compared(cells)

        monkeypatch.setattr(outcomes, "compare_stored", apart)
        app = page_opened(COMPARE_PAGE, arms_url, monkeypatch, by="package")
        assert "have no package in common: deselect “package” under “One row for each”" in said(app)
        assert "package" in app.button_group(key="by").options
        assert "--" not in said(app)

    def test_an_empty_store(self, store: Client, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with database(store) as name, read_only_url(name, data_dir) as url:
            app = page_opened(COMPARE_PAGE, url, monkeypatch)
        assert "Nothing to compare" in said(app)
        assert "docs/contract.md" in said(app)

    def test_clickhouse_was_never_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(COMPARE_PAGE, NOWHERE, monkeypatch)
        assert "no ClickHouse answers" in app.error[0].value

    def test_clickhouse_went_away(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(COMPARE_PAGE, arms_url, monkeypatch)
        monkeypatch.setattr(outcomes, "compare_stored", away)
        st.cache_data.clear()
        checked(app.run())
        assert "last good data" in app.warning[0].value
        assert "▲ after is better than before:" in app.success[0].value


HOUR = pd.Timestamp("2026-11-01", tz="UTC")


class TestArms:
    def test_the_arm_recorded_first_is_compared_with(self) -> None:
        hours = pd.to_datetime(["2026-11-02", "2026-11-01", "2026-11-03", "2026-11-01"], utc=True)
        arms = [["a-newer"], ["z-older", ""], ["m-newest", "z-older"], []]
        stored = arms_stored(pd.DataFrame({"arms": arms, "first_seen": hours}))
        assert stored == ["z-older", "a-newer", "m-newest"]
        assert usual_arms(stored) == ("z-older", "m-newest")

    @pytest.mark.parametrize(
        ("packages", "rows"),
        [
            (("main", "pr-188", "main"), ("host",)),
            (("main", "pr-188", "pr-188"), ("host", "package")),
            (("main", "main", "main"), ("host", "package")),
        ],
    )
    def test_packages_that_differ_by_arm_are_no_rows(self, packages: tuple[str, ...], rows: tuple[str, ...]) -> None:
        arms = [["before"], ["after"], ["before", ""]]
        engines = pd.DataFrame({"arms": arms, "engine_package": packages, "host_name": "node-1"})
        assert usual_rows(engines, ("before", "after")) == rows
        assert usual_rows(engines, ("before", "none")) == usual_rows(pd.DataFrame(), USUAL_ARMS) == USUAL_ROWS

    @pytest.mark.parametrize(
        ("engines", "arms"),
        [
            # One execution, recorded first, on another host: the two that were run against each other are offered.
            (["other main a corrected 1", "box main a y 7", "box main a x 7", "third main a x 90"], ("y", "x")),
            (["box main a x 7", "box pr-188 a y 7"], ("x", "y")),
            (["box main a x 7", "box main b y 7", "box main a z 2"], ("x", "y")),
            (["box main a x 7", "box main c x 1", "box main b y 7", "box main c y 1", "box main a z 2"], ("x", "z")),
            (["box main a x,y 9", "box main a x,z 30"], ("x", "z")),
            (["box main a before 2", "box main a after 2", "box main a x 40", "box main a y 40"], ("before", "after")),
            (["one main a before 9", "two main a after 9", "two main a x 1"], ("after", "x")),
            (["one main a x 9", "two main a y 9"], None),
            (["one main a x 9"], None),
            ([], None),
        ],
    )
    def test_the_two_with_the_most_pairs_are_offered(self, engines: list[str], arms: tuple[str, str] | None) -> None:
        columns = ["host_name", "engine_package", "engine_recipe", "arms", "cells"]
        rows = pd.DataFrame([one.split() for one in engines], columns=columns)
        seconds = pd.to_timedelta(range(len(rows)), unit="s")
        rows = rows.assign(arms=rows.arms.str.split(","), cells=rows.cells.astype(int), first_seen=HOUR + seconds)
        assert comparable_arms(rows) == arms

    def test_before_and_after_are_what_they_are_called(self) -> None:
        assert usual_arms(["after", "before", "other"]) == ("before", "after")
        assert usual_arms(["only"]) == ("before", "after")
        assert arms_stored(pd.DataFrame()) == []


class TestWords:
    @pytest.mark.parametrize(
        ("told", "on_the_page"),
        [
            ("arm x has more than 9 cells: narrow the time by --from and --to", "choose a shorter time range"),
            ("cell c records no drafts: it cannot be simulated; --form exact needs none", "cell c records no drafts"),
        ],
    )
    def test_refusals_name_no_flags(self, told: str, on_the_page: str) -> None:
        assert refusal_words(told).endswith(on_the_page)
        assert "--" not in refusal_words(told)

    def test_a_sentence_has_shift_interval_and_pairs(self, published: Comparison) -> None:
        told = comparison_sentence(published)
        assert told.startswith("**▲ after is better than before:** tokens/s shifts by +")
        assert "95 % interval +" in told
        assert "over 40 pairs of cells in 4 groups" in told

    def test_a_row_for_each_group_and_for_all(self, published: Comparison) -> None:
        lines = comparison_table(published).splitlines()
        assert len(lines) == 2 + 4 + 1
        assert lines[-1].startswith("| **all** |  | ")
        assert all(line.count("|") == lines[0].count("|") for line in lines)

    def test_text_of_engines_is_escaped(self) -> None:
        cells = [cell_at(arm, place, 100.0, host="a|b<i>") for place, arm in enumerate(("before", "after"))]
        assert "a\\|b\\<i\\>" in comparison_table(compared(cells))


class TestCharts:
    def test_every_paired_cell_is_a_dot(self, published: Comparison) -> None:
        rows = pd.DataFrame(cell_rows(published))
        assert len(rows) == 80
        assert (rows.groupby("pair").arm.nunique() == 2).all()
        assert set(rows.columns) >= {"service_instance_id", "cell", "started_utc"}
        assert "tokens/s" in str(arm_cells(published).to_dict()["layer"][1]["encoding"]["x"]["title"])

    def test_what_is_not_known_is_not_drawn(self) -> None:
        two = compared([cell_at(arm, place, 100.0 + place) for place, arm in enumerate(("before", "after"))])
        row = shift_row(two.overall)
        assert row["low"] is None
        assert row["band_high"] is None
        assert row["verdict"] == Verdict.UNDETERMINED
        low, high = extent(pd.DataFrame([row]))
        assert low < 0 < row["shift"] < high
        arm_shifts(two).to_dict()

    @pytest.mark.parametrize(("before", "after"), [(1000.0, 0.0), (0.0, 1000.0), (0.0, 0.0)])
    def test_arms_that_emit_nothing_are_drawn_and_told(self, before: float, after: float) -> None:
        arms = ("before", "after", "after", "before") * 4
        cells = [cell_at(arm, place, before if arm == "before" else after) for place, arm in enumerate(arms)]
        compared_arms = compared(cells)
        row = shift_row(compared_arms.overall)
        shift = 0.0 if before == after else 200.0 if after else -200.0
        assert (row["shift"], row["low"], row["high"], row["band_high"]) == (shift, shift, shift, 0.0)
        low, high = extent(pd.DataFrame([row]))
        assert low < min(0.0, shift)
        assert max(0.0, shift) < high
        assert {value["value"] for value in cell_rows(compared_arms)} == {before, after}
        arm_shifts(compared_arms).to_dict()
        arm_cells(compared_arms).to_dict()
        assert f"shifts by {shift:+.2f} %" in comparison_sentence(compared_arms)
        assert f"{before:,.0f} → {after:,.0f}" in comparison_table(compared_arms)

    def test_the_unit_stands_on_the_axis(self, published: Comparison) -> None:
        fractions = published._replace(metric=Metric.PLAIN_FRACTION)
        assert "points" in str(arm_shifts(fractions).to_dict())

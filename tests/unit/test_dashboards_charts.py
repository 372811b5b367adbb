"""Charts: pure functions of rows, tested without Streamlit."""

from typing import Any

import pandas as pd
import pytest

from dashboards.charts import choices, estimates, fleet_grid, margins, palette, throughput, times
from dashboards.charts.cell_timeline import cell_timeline, drawn_executions
from dashboards.charts.finished import finished
from dashboards.words.cells import clocks_sentence
from tests.fixtures.dashboard_rows import BEGIN, candidates, cells, executions, poison


def luminance(colour: str) -> float:
    """Relative luminance of a colour, as WCAG has it."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in shares]
    return sum(one * weight for one, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def time_domains(spec: dict[str, Any]) -> list[tuple[float, float]]:
    """From when to when each panel's time axis goes by the data of its layers."""
    return [domain_of(panel, spec["datasets"]) for panel in spec["vconcat"]]


def domain_of(panel: dict[str, Any], datasets: dict[str, list[dict[str, Any]]]) -> tuple[float, float]:
    """The least and the greatest instant that any layer of a panel draws."""
    instants = [
        row[layer["encoding"][channel]["field"]]
        for layer in layers_of(panel)
        for channel in ("x", "x2")
        for row in (datasets[layer["data"]["name"]] if channel in layer.get("encoding", {}) else [])
    ]
    return min(instants), max(instants)


def layers_of(part: dict[str, Any], data: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The layers of a panel, each with the data that it draws."""
    data = part.get("data", data)
    inner = part.get("layer")
    return [{**part, "data": data}] if inner is None else [one for layer in inner for one in layers_of(layer, data)]


class TestFleetGrid:
    def test_a_row_for_each_engine_and_a_mark_for_each_flag(self) -> None:
        drawn = fleet_grid.grid_rows(
            cells({"stuck": True, "inflated": True}, {"service_instance_id": "instance-2", "inflated": True})
        )
        assert drawn.row.nunique() == 2
        assert list(drawn.mark) == ["stuck, inflated", "inflated"]
        assert list(drawn.verdict) == ["stuck and inflated", "inflated"]

    @pytest.mark.parametrize(("width_px", "shown"), [(200, "stuck, inflated"), (70, "SI"), (5, "")])
    def test_marks_shrink_with_the_cell(self, width_px: float, shown: str) -> None:
        assert fleet_grid.mark(["stuck", "inflated"], width_px) == shown

    def test_engines_of_one_host_are_told_apart_on_one_short_line(self) -> None:
        """A host's name alone is enough where it has one engine."""
        engines = [
            {"service_instance_id": f"gpu-node-001-1793908800-{number}", "host_name": "gpu-node-001"}
            for number in (4004, 4006)
        ]
        drawn = fleet_grid.grid_rows(cells(*engines, {"service_instance_id": "other", "host_name": "gpu-node-002"}))
        lines = [row.split(fleet_grid.SEPARATOR)[5] for row in drawn.row]
        assert lines == ["…001 …0-4004", "…001 …0-4006", "gpu-node-002"]
        assert all(len(line) <= fleet_grid.NARROW_LETTERS for line in lines)

    def test_a_cell_without_a_choice_is_not_coloured(self) -> None:
        drawn = fleet_grid.grid_rows(cells({"has_speculative": False}, {"plain_fraction": None}, {}))
        assert list(drawn.judged) == [False, False, True]

    def test_a_cell_of_long_ago_keeps_a_visible_width(self) -> None:
        old = {"started_at": BEGIN - pd.Timedelta("1500D"), "ended_at": BEGIN - pd.Timedelta("1500D")}
        drawn = fleet_grid.grid_rows(cells(old, {}))
        span = drawn.end_ms.max() - drawn.start_ms.min()
        assert ((drawn.end_ms - drawn.start_ms) / span * fleet_grid.TYPICAL_WIDTH_PX >= 1.9).all()

    @pytest.mark.parametrize(("ahead", "words"), [("2h", "clock 2 h ahead"), ("1095D", "clock 1,095 d ahead")])
    def test_a_clock_that_is_ahead_moves_no_axis_and_is_named(self, ahead: str, words: str) -> None:
        """Its cells lie beyond the axis, which ends with what arrived."""
        wrong = [
            {"service_instance_id": "wrong", "host_name": "node-9", "cell": f"{n}", "stuck": True, "tokens_per_s": 7.0,
             "started_at": BEGIN + pd.Timedelta(ahead) + pd.Timedelta(n, "s"),
             "ended_at": BEGIN + pd.Timedelta(ahead) + pd.Timedelta(n + 1, "s"),
             "last_received_at": BEGIN.floor("ms") + pd.Timedelta(n + 1, "s")}
            for n in range(3)
        ]  # fmt: skip
        alone, drawn = fleet_grid.grid_rows(cells({})), fleet_grid.grid_rows(cells({}, *wrong))
        assert drawn.start_ms.max() <= drawn.end_ms.max() == alone.end_ms.max()
        right = drawn[drawn.service_instance_id == "instance-1"]
        assert list(right.row) == list(alone.row)
        assert list(right.end_ms) == list(alone.end_ms)
        (named,) = drawn[drawn.service_instance_id == "wrong"].itertuples()
        assert (named.clock, named.start_ms, named.end_ms) == (words, alone.end_ms.max(), alone.end_ms.max())
        assert named.row.split(fleet_grid.SEPARATOR)[3] == "7"
        assert clocks_sentence(cells({}, *wrong)).startswith(f"node-9: {words}. ")
        assert clocks_sentence(cells({})) == ""

    def test_of_a_clock_that_is_hardly_ahead_the_past_is_drawn(self) -> None:
        wrong = {"service_instance_id": "wrong", "last_received_at": BEGIN.floor("ms") + pd.Timedelta("10s")}
        right = {"ended_at": BEGIN + pd.Timedelta("20s"), "started_at": BEGIN - pd.Timedelta("9s")}
        drawn = fleet_grid.grid_rows(cells(right, wrong))
        assert list(drawn.end_ms - drawn.start_ms) == [29_000.0, 20_000.0]
        assert list(drawn.clock) == ["", ""]

    def test_of_a_clock_that_is_ahead_alone_the_row_stands(self) -> None:
        drawn = fleet_grid.grid_rows(cells({"last_received_at": BEGIN.floor("ms") - pd.Timedelta("2h")}))
        assert list(drawn.clock) == ["clock 2 h ahead"]

    def test_a_short_cell_that_stands_alone_is_drawn_wider_on_every_screen(self) -> None:
        def short(instance: str, at_s: float) -> dict[str, Any]:
            began = BEGIN + pd.Timedelta(at_s, "s")
            return {"service_instance_id": instance, "started_at": began, "ended_at": began + pd.Timedelta("300ms")}

        drawn = fleet_grid.grid_rows(
            cells(short("alone", -600), short("crowd", -600), short("crowd", -599), {"service_instance_id": "whole"})
        )
        assert list(drawn.lone) == [True, False, True, False]

    def test_the_newest_cell_of_a_running_engine_is_no_lone_one(self) -> None:
        began = BEGIN + pd.Timedelta("30s")
        drawn = fleet_grid.grid_rows(
            cells({}, {"started_at": began, "ended_at": began + pd.Timedelta("40ms"), "cell": "next"})
        )
        assert list(drawn.lone) == [False, False]

    def test_what_no_row_has_is_no_layer(self) -> None:
        began = BEGIN - pd.Timedelta("2h")
        short = {"service_instance_id": "short", "started_at": began, "ended_at": began + pd.Timedelta("300ms")}
        ahead = {"service_instance_id": "ahead", "last_received_at": BEGIN.floor("ms")} | {
            name: BEGIN + pd.Timedelta(after) for name, after in {"started_at": "2h", "ended_at": "121min"}.items()
        }

        def layers(*rows: dict[str, Any]) -> int:
            return len(fleet_grid.fleet_grid(cells({}, *rows)).layer)

        assert layers(short) == layers(ahead) == layers() + 1
        assert layers(short, ahead) == layers() + 2

    def test_an_engine_that_is_gone_shows_since_when_and_no_speed(self) -> None:
        """As `tachograph top` does: its last figure would read as if it ran."""
        ago = {
            "started_at": BEGIN - pd.Timedelta("14min"),
            "ended_at": BEGIN - pd.Timedelta("14min") + pd.Timedelta("30s"),
        }
        late = {"started_at": BEGIN - pd.Timedelta("80s"), "ended_at": BEGIN - pd.Timedelta("50s")}
        drawn = fleet_grid.grid_rows(
            cells({}, ago | {"service_instance_id": "gone"}, late | {"service_instance_id": "late"}, ago)
        )
        shown = {one.service_instance_id: one.row.split(fleet_grid.SEPARATOR)[3] for one in drawn.itertuples()}
        assert shown == {"instance-1": "2,400", "late": "2,400", "gone": "-14 min"}

    def test_no_choice_is_no_shade_of_the_scale(self) -> None:
        """Between any two of its colours, and to the eye: it is darker than each."""
        darkest = min(map(luminance, palette.PLAIN_FRACTION_RANGE))
        assert luminance(palette.NO_CHOICE) < darkest / 1.3

    def test_the_spec_stays_the_same_while_data_changes(self) -> None:
        """Else the browser would draw it anew at each refresh, and flicker."""
        first, second = (fleet_grid.fleet_grid(cells(row)).to_dict() for row in ({}, {"tokens_per_s": 1.0}))
        for spec in (first, second):
            del spec["datasets"]
        assert {**first, "data": 0, "layer": 0} == {**second, "data": 0, "layer": 0}
        assert [one["mark"] for one in first["layer"]] == [one["mark"] for one in second["layer"]]


class TestCellTimeline:
    def test_gpu_time_lies_where_the_device_ran(self) -> None:
        drawn = drawn_executions(executions(2))
        assert drawn.gpu_start_ms[0] == pytest.approx(times.epoch_ms(executions(2).started_at)[0] + 1.0)
        assert (drawn.gpu_end_ms - drawn.gpu_start_ms).round(3).eq(28.0).all()
        assert list((drawn.gpu_start_ms - drawn.gap_start_ms).round(3)) == [1.0, 2.0], "none begins before the cell"

    def test_an_unknown_device_start_is_taken_from_the_completion(self) -> None:
        rows = executions(2, graph_gpu_start_offset_ns=pd.array([None, None], "Int64"))
        drawn = drawn_executions(rows)
        assert drawn.gpu_end_ms[0] == pytest.approx(times.epoch_ms(rows.ended_at)[0])

    def test_panels(self) -> None:
        rows = executions()
        spec = cell_timeline(rows, candidates(rows)).to_dict()
        titles = [str(panel["title"]) for panel in spec["vconcat"]]
        assert len(titles) == 8
        assert titles[-2].startswith("P128")
        assert all(any(word in title for word in ("ms", "depth", "second", "graph", "chosen", "%")) for title in titles)

    def test_every_strip_has_the_same_time(self) -> None:
        """Whatever each of them draws: the axis of one that ended sooner would be another."""
        rows = executions()
        begin_ms, end_ms = rows.started_at.min().value / 1e6, rows.ended_at.max().value / 1e6
        late = candidates(rows.assign(started_at=rows.started_at + pd.Timedelta("2s")))
        never = candidates(rows[:5]).assign(graph="P64")
        gaps = rows.assign(idle_gap_ns=[60_000_000_000, *[2_000_000] * 59])
        early = poison(sequence=None, at_ns=BEGIN.value - 60_000_000_000)
        chart = cell_timeline(gaps, pd.concat([candidates(rows), late, never]), [early, poison()])
        domains = time_domains(chart.to_dict())
        assert len(domains) == 9
        assert all(domain == pytest.approx((begin_ms, end_ms), abs=1e-3) for domain in domains)

    def test_without_candidates_the_rest_is_drawn(self) -> None:
        rows = executions()
        assert len(cell_timeline(rows, candidates(rows).iloc[:0]).to_dict()["vconcat"]) == 5

    def test_a_graph_that_never_ran_has_its_panel(self) -> None:
        rows = executions()
        never = candidates(rows).assign(graph="P64")
        titles = [str(panel["title"]) for panel in cell_timeline(rows, never).to_dict()["vconcat"]]
        assert titles[-1].endswith("(not executed here)")

    def test_margins_are_of_the_chosen_over_the_next_best(self) -> None:
        rows = executions()
        told = margins.decisions(candidates(rows))
        assert len(told) == len(rows)
        expected = 100 * ((70 / 29) / (32 / 14) - 1)
        first = told[(told.graph == "P128") & (told.sequence < 30)].iloc[0]
        assert first.margin_percent == pytest.approx(expected)
        assert first.next_best == "decode"
        refreshes = candidates(rows).assign(graph_purpose="refresh")
        assert margins.decisions(refreshes).empty

    def test_the_execution_that_lifted_an_estimate_is_marked(self) -> None:
        drawn = drawn_executions(executions())
        found = poison(sequence=int(drawn.sequence[3]))
        marks = estimates.poisoned(drawn, [found, poison(sequence=None, estimate_after_ns=34_000_000)])
        assert marks.poison_ms[0] == drawn.submitted_ms[3]
        assert list(marks.words) == [f"lifted by #{found.sequence}", ""]
        assert marks.name[1] == "not recorded"
        assert marks.poison_ms[1] == found.at_ns / 1e6
        spec = cell_timeline(executions(), candidates(executions()), [found]).to_dict()
        assert f"lifted by #{found.sequence}" in str(spec["datasets"])

    def test_step_lines_keep_the_changes_only(self) -> None:
        lines = estimates.changes(candidates(executions()))
        assert list(lines[lines.graph == "P128"].estimate_ms) == [29.0, 35.0, 35.0]
        assert len(lines[lines.graph == "decode"]) == 2


class TestThroughput:
    def test_whole_seconds_only(self) -> None:
        drawn = throughput.tokens_by_second(executions(60))
        assert list(drawn.tokens_per_s) == [2000.0, 2000.0, 2000.0]
        assert drawn.second_ms.diff().dropna().eq(1000).all()

    def test_a_cell_shorter_than_a_second_has_none(self) -> None:
        assert throughput.tokens_by_second(executions(3)).empty

    def test_a_second_without_tokens_is_a_dip(self) -> None:
        rows = executions(100)
        rows = rows[(rows.ended_at < BEGIN + pd.Timedelta("1s")) | (rows.ended_at > BEGIN + pd.Timedelta("2s"))]
        assert 0.0 in list(throughput.tokens_by_second(rows).tokens_per_s)

    def test_of_an_engine_that_reports_no_tokens_nothing_is_drawn_and_that_is_said(self) -> None:
        rows = executions(60, batch_tokens_emitted=pd.array([None] * 60, "Int64"))
        assert throughput.tokens_by_second(rows).empty
        titles = [panel["title"] for panel in finished(cell_timeline(rows, candidates(rows)))["vconcat"]]
        assert throughput.UNREPORTED in titles
        known = [panel["title"] for panel in finished(cell_timeline(executions(), candidates(rows)))["vconcat"]]
        assert throughput.UNREPORTED not in known
        assert throughput.TITLE in known

    def test_a_second_whose_executions_report_none_is_no_dip(self) -> None:
        rows = executions(100)
        silent = rows.ended_at.dt.floor("1s") == BEGIN.floor("1s") + pd.Timedelta("2s")
        drawn = throughput.tokens_by_second(rows.assign(batch_tokens_emitted=rows.batch_tokens_emitted.mask(silent)))
        assert list(drawn.tokens_per_s.dropna()) == [2000.0] * 5, "three seconds, and the ends of two stretches"
        (missing,) = drawn.second_ms[drawn.tokens_per_s.isna()]
        assert missing in list(drawn.second_ms[drawn.tokens_per_s.notna()]), "the second before it is drawn to its end"

    @pytest.mark.parametrize("kind", ["prefill", "plain_decode"])
    def test_none_emitted_is_drawn_as_none(self, kind: str) -> None:
        rows = executions(60, batch_tokens_emitted=pd.array([0] * 60, "Int64"), graph_kind=kind)
        assert set(throughput.tokens_by_second(rows).tokens_per_s) == {0.0}


def test_more_executions_are_more_data_and_no_other_chart() -> None:
    """Else the browser draws the chart anew, and a zoom of it is lost."""
    charts = [finished(cell_timeline(rows, candidates(rows))) for rows in (executions(60), executions(80))]
    few, more = (chart.pop("datasets") for chart in charts)
    assert charts[0] == charts[1]
    assert list(few) == list(more)
    assert sum(map(len, few.values())) < sum(map(len, more.values()))


def test_each_midnight_is_told_by_its_day_also_where_a_week_a_month_or_a_year_begins() -> None:
    units = times.axis().to_dict()["format"]
    assert {units[unit] for unit in ("date", "week", "month", "quarter", "year")} == {"%d %b"}


def test_shares_add_up() -> None:
    rows = choices.shares(executions())
    assert rows.share.sum() == pytest.approx(1.0)
    assert list(rows.graph) == ["P128", "decode"]
    assert rows.words[0] == "66.7 % (40)"


def test_a_graph_that_was_refreshed_is_named_so() -> None:
    assert choices.named("P128", "acceptance_probe") == "P128 (acceptance probe)"


def test_colours_are_steady_and_tell_kinds_apart() -> None:
    colours = palette.graph_colours(executions())
    assert colours == palette.graph_colours(executions().iloc[::-1])
    assert list(colours) == ["decode", "P128"]
    assert len(set(colours.values())) == 2

"""Shifts, intervals and verdicts: against tables of the literature, and against arms whose difference is known."""

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats

from queries.commands.compare import arms_of
from queries.compare.cells import Cell
from queries.compare.comparison import Group, Metric, Verdict, compared
from queries.compare.document import document
from queries.compare.errors import NothingToCompareError
from queries.compare.markdown import markdown
from queries.compare.shifts import holm, pairs_needed, rank_limit, same_arm_band, shift_of
from queries.compare.terminal import dots, rendered, table_of
from queries.compare.wording import band_text, figure, interval_text, signed
from queries.errors import CallError
from tests.fixtures.arm_tables import Noise, Table, cell_at, cells_of_table, synthetic_noises

DECIDED = (Verdict.BETTER, Verdict.WORSE)


def pairs(before: list[float], after: list[float], **fields: object) -> list[Cell]:
    """Cells in mirrored order."""
    cells = []
    for number, rates in enumerate(zip(before, after, strict=True)):
        for side in (0, 1):
            place = 2 * number + (side if number % 2 == 0 else 1 - side)
            cells.append(cell_at(("before", "after")[side], place, rates[side], **fields))
    return cells


def only(cells: list[Cell], **options: object) -> Group:
    (row,) = compared(cells, **options).rows  # type: ignore[arg-type]
    return row


def test_signed_rank_limits_are_those_of_the_tables() -> None:
    # Critical values of the signed-rank statistic at 2.5 % one-sided, from 6 to 50 pairs.
    known = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 15: 25, 20: 52, 25: 89, 30: 137, 40: 264, 50: 434}
    assert {count: rank_limit(count) for count in known} == known
    assert rank_limit(51) == pytest.approx(453, abs=2)


def test_hodges_lehmann_of_depression_scores() -> None:
    # Hollander, Wolfe, Chicken, example 3.1: nine patients; estimate -0.46, two-sided p = 0.0391.
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    shift = shift_of([b - a for a, b in zip(before, after, strict=True)])
    assert shift.hodges_lehmann == pytest.approx(-0.46)
    assert shift.p_value == pytest.approx(0.0391, abs=1e-4)
    assert shift.hodges_lehmann_interval == pytest.approx((-0.786, -0.010))


@given(st.lists(st.floats(-50, 50).filter(lambda value: abs(value) > 1e-3), min_size=6, max_size=30, unique=True))
@settings(max_examples=50, deadline=None)
def test_the_interval_is_the_test_inverted_and_swaps_with_the_arms(differences: list[float]) -> None:
    shift, swapped = shift_of(differences), shift_of([-one for one in differences])
    interval = shift.hodges_lehmann_interval
    assert interval is not None
    assert interval.low <= shift.hodges_lehmann <= interval.high
    assert swapped.hodges_lehmann_interval == pytest.approx((-interval.high, -interval.low))
    assert swapped.p_value == pytest.approx(shift.p_value)
    if len({abs(one) for one in differences}) == len(differences):
        assert (interval.low > 0 or interval.high < 0) == (shift.p_value <= 0.05)


def test_five_pairs_decide_nothing_and_six_do() -> None:
    five = only(pairs([100.0] * 5, [120.0, 121, 122, 123, 124]))
    assert (five.verdict, five.shift.hodges_lehmann_interval, five.shift.mean_interval) == ("undetermined", None, None)
    assert five.shift.p_value == pytest.approx(0.0625)
    six = only(pairs([100.0] * 6, [120.0, 121, 122, 123, 124, 125]))
    assert (six.verdict, six.shift.p_value) == (Verdict.BETTER, pytest.approx(0.03125))
    assert only(pairs([120.0, 121, 122, 123, 124, 125], [100.0] * 6)).verdict is Verdict.WORSE


def test_one_wild_cell_neither_makes_nor_hides_a_verdict_by_itself() -> None:
    quiet = [100 + 0.01 * n for n in range(10)]
    wild = [*quiet[:-1], 200.0]
    assert only(pairs(quiet, wild)).verdict is Verdict.UNDETERMINED
    # Nine cells are 1 % better, one has collapsed: the usual pair gained, the whole did not.
    assert only(pairs(quiet, [1.01 * one for one in quiet[:-1]] + [10.0])).verdict is Verdict.UNDETERMINED


def test_within_noise_needs_a_shift_too_small_to_matter_and_a_band() -> None:
    noise = np.random.default_rng(5).normal(0, 0.1, (2, 20))
    before, after = ([100 + float(one) for one in row] for row in noise)
    row = only(pairs(before, after))
    assert row.verdict is Verdict.WITHIN_NOISE
    assert row.more_cells is None
    assert row.same_arm_band == pytest.approx(0.28, abs=0.1)
    assert only(pairs(before, after), smallest_shift=0.01).verdict is not Verdict.WITHIN_NOISE
    # A quiet host with a real shift of 0.9 %, far inside what a noisy one would show.
    assert only(pairs(before, [1.009 * one for one in after])).verdict is Verdict.BETTER


def test_a_less_plain_fraction_is_better() -> None:
    cells = [
        cell._replace(
            plain_fraction=0.6 if cell.arm == "before" else 0.1 + 0.001 * (cell.position or 0),
            stuck=cell.arm == "before",
        )
        for cell in pairs([100.0] * 8, [100.0] * 8)
    ]
    comparison = compared(cells, metric=Metric.PLAIN_FRACTION)
    assert comparison.overall.verdict is Verdict.BETTER
    assert comparison.overall.shift.hodges_lehmann == pytest.approx(-49.2, abs=0.2)
    assert (sum(comparison.overall.before.stuck), sum(comparison.overall.after.stuck)) == (8, 0)
    assert comparison.overall.stuck_p_value == pytest.approx(2 / 2**8)


def test_stuck_cells_that_came_and_went_are_weighed_against_each_other() -> None:
    """McNemar's exact test: of four pairs that differ, so one-sided a split as 3 to 1 comes about in 10 of 16 ways."""
    cells = pairs([100.0] * 8, [100.0 + place for place in range(8)])
    stuck = {("before", place) for place in range(3)} | {("after", 3)}
    marked = [cell._replace(stuck=(cell.arm, (cell.position or 0) // 2) in stuck) for cell in cells]
    row = only(marked)
    assert (sum(row.before.stuck), sum(row.after.stuck)) == (3, 1)
    assert row.stuck_p_value == pytest.approx(10 / 16)


def test_a_cell_that_emitted_nothing_counts() -> None:
    row = only(pairs([100.0 + n for n in range(8)], [100.5 + n for n in range(7)] + [0.0]))
    assert row.shift.pairs == 8
    assert row.shift.mean == pytest.approx(-25, abs=1)


def test_arms_alike_to_the_token() -> None:
    row = only(pairs([100.0, 110, 120] * 3, [100.0, 110, 120] * 3))
    assert (row.shift.hodges_lehmann, row.shift.p_value, row.verdict) == (0.0, 1.0, Verdict.WITHIN_NOISE)


@pytest.mark.parametrize("rate", [0.0, 1000.0])
def test_cells_that_are_all_alike_are_within_noise(rate: float) -> None:
    # One arm against itself does not differ either: the band has no width, and the shift lies in it.
    comparison = compared(pairs([rate] * 24, [rate] * 24))
    row = comparison.overall
    assert (row.shift.mean_interval, row.same_arm_band) == ((0, 0), 0)
    assert (row.verdict, row.more_cells) == (Verdict.WITHIN_NOISE, None)
    for told in (markdown(comparison), json.dumps(document(comparison))):
        assert "more cells" not in told
    # A single token more in every cell, and nothing of the kind between cells of one arm.
    assert only(pairs([1000.0] * 24, [1000.1] * 24)).verdict is Verdict.BETTER


def test_without_a_band_nothing_is_within_noise_and_more_pairs_do_not_make_one() -> None:
    # Six engines that ran one pair each: no arm has a neighbour of its own.
    cells = [cell for n in range(6) for cell in pairs([1000.0], [1000.0], host=f"node-{n}")]
    comparison = compared(cells, by=("package",))
    row = comparison.overall
    assert (row.shift.pairs, row.same_arm_band, row.verdict, row.more_cells) == (6, None, Verdict.UNDETERMINED, None)
    assert any("what an arm differs from itself is not known" in note for note in comparison.notes)
    assert "**undetermined**" in markdown(comparison)


def test_an_arm_that_emitted_nothing_is_worse_and_one_against_nothing_better() -> None:
    some, none = [1000.0 + n for n in range(8)], [0.0] * 8
    assert only(pairs(some, none)).verdict is Verdict.WORSE
    assert only(pairs(none, some)).verdict is Verdict.BETTER
    comparison = compared(pairs(some, none))
    assert comparison.overall.shift.hodges_lehmann_interval == (-200, -200)
    assert "| 1,004 -> 0 (0 -> 0) | 8 | -200.00 | -200.00 to -200.00 |" in markdown(comparison)
    # The host whose cells are all 0 in one arm keeps its row.
    both = compared([*pairs(some, none), *pairs(some, some, host="node-1")])
    assert [(row.labels[0], row.shift.pairs) for row in both.groups] == [("node-0", 8), ("node-1", 8)]


def test_an_arm_of_which_every_other_cell_crashed_is_worse() -> None:
    rng = np.random.default_rng(11)
    rates = [0.0 if n % 2 else 1050 + float(rng.normal(0, 4)) for n in range(24)]
    row = only(pairs([1000 + float(one) for one in rng.normal(0, 4, 24)], rates))
    assert (row.verdict, row.shift.pairs) == (Verdict.WORSE, 24)
    assert row.after.mean == pytest.approx(525, abs=5)


def test_cells_of_which_nothing_was_recorded_are_left_out_and_named() -> None:
    cells = pairs([1000.0 + n for n in range(8)], [1000.5 + n for n in range(7)] + [0.0])
    unknown = [cell._replace(tokens_per_s=None) if cell.tokens_per_s == 0 else cell for cell in cells]
    comparison = compared(unknown)
    assert comparison.overall.shift.pairs == 7
    assert [one.reason for one in comparison.left_out if one.cell.tokens_per_s is None] == ["nothing measured"]


def test_arms_that_do_not_differ_are_seldom_decided() -> None:
    # `make bench-compare` does this 1,000 times with simulated noise. Chance of more than 10 in 120 at 4 %: 0.6 %.
    noises = synthetic_noises(1)
    for shares in (True, False):
        tables = [compared(cells_of_table(Table(noises, 0.0, shares), seed)).rows for seed in range(60)]
        assert sum(any(row.verdict in DECIDED for row in rows) for rows in tables) <= 5


def test_a_true_gain_is_found_or_left_open_with_what_it_would_take() -> None:
    noises = synthetic_noises(1)
    rows = [
        compared(cells_of_table(Table(noises, 0.9, shares), seed)).overall
        for seed in range(25)
        for shares in (True, False)
    ]
    assert {row.verdict for row in rows} == {Verdict.BETTER, Verdict.UNDETERMINED}
    for row in rows:
        assert (row.more_cells is None) == (row.verdict is Verdict.BETTER)
        assert row.more_cells is None or row.more_cells.for_smallest_shift >= 2


def test_as_many_pairs_as_it_asks_for_find_the_shift() -> None:
    sd, gain = 2.0, 0.9
    needed = pairs_needed(gain, sd, tests=1)
    assert needed == 44
    rng = np.random.default_rng(2)
    found = sum(stats.wilcoxon(rng.normal(gain, sd, needed)).pvalue <= 0.04 for _ in range(400))
    assert 0.75 < found / 400 < 0.86
    assert pairs_needed(0, sd, tests=1) is None


def test_bands_and_corrections() -> None:
    assert same_arm_band([1.0, -1.0]) is None
    assert same_arm_band([1.0, -1.0, 1.0]) == pytest.approx(1.96, abs=0.01)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_wrong_calls() -> None:
    cells = pairs([100.0] * 6, [101.0] * 6)
    with pytest.raises(CallError, match="with itself"):
        compared(cells, ("after", "after"))
    with pytest.raises(CallError, match="above 0"):
        compared(cells, smallest_shift=0)
    with pytest.raises(NothingToCompareError, match="no cells of arm 'later'") as refused:
        compared(cells, ("before", "later"))
    assert refused.value.exit_code == 5
    many = [cell_at(f"arm-{n}", n, 100.0) for n in range(12)]
    with pytest.raises(NothingToCompareError, match=r"'x': there are arm-0, arm-1, arm-10, arm-11, arm-2 and 7 more$"):
        compared(many, ("x", "y"))
    with pytest.raises(NothingToCompareError, match=r"'y': there is only$"):
        compared([cell_at("only", 0, 100.0)], ("only", "y"))
    for wrong in ("before", "before,", "a,b,c"):
        with pytest.raises(CallError, match="two names"):
            arms_of(wrong)


def test_an_order_that_is_not_mirrored_is_said() -> None:
    cells = [cell_at(("before", "after")[n % 2], n, 100.0 + n % 2) for n in range(12)]
    assert any("mirror the order" in note for note in compared(cells).notes)


@pytest.fixture
def two_groups() -> list[Cell]:
    quiet = Noise(np.array([2400.0, 2410.0, 2420.0]), np.array([1.0, 0.999]))
    cells = cells_of_table(Table([quiet, quiet], 1.0, pairs=(8, 4)), 3)
    lost = cells[0]._replace(executions_lost=500, cell="bench|1")
    return [lost, *(cell._replace(stuck=cell.arm == "before") for cell in cells[1:])]


def test_markdown_is_ready_for_a_pull_request(two_groups: list[Cell]) -> None:
    lines = markdown(compared(two_groups)).splitlines()
    assert lines[0].startswith("| host | package | tokens_per_s, before -> after (stuck cells) | pairs | shift, % |")
    assert {line.count(" | ") for line in lines[:5]} == {lines[0].count(" | ")}
    assert "(7 -> 0) | 7 |" in lines[2]
    assert "**better**" in lines[2]
    assert "(4 -> 0) | 4 |" in lines[3]
    assert "**undetermined, about" in lines[3]
    assert lines[4].startswith("| **all** |  | ")
    text = "\n".join(lines)
    assert "- left out, lost 500 executions, 1,000 stored: bench\\|1 of node-0 (before)" in text
    assert "- 1 of 2 groups have fewer than 6 pairs" in text
    assert "Hodges-Lehmann" in lines[-1]
    assert "Holm-adjusted over 3 rows" in lines[-1]


def test_the_terminal_shows_every_cell(two_groups: list[Cell]) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(rendered(compared(two_groups)))
    text = console.export_text()
    assert "undetermined" in text
    assert "left out, no neighbour of the other arm" in text
    assert any(dot in text for dot in "·:⁖⁘⁙")
    headings = [str(column.header).split("\n")[0] for column in table_of(compared(two_groups)).columns]
    of_cells = ["arm", "tokens_per_s", "stuck", "cells, from least to most"]
    assert headings == ["host", *of_cells, "pairs", "shift %", "mean %", "A/A", "verdict"]


def test_however_many_cells_stand_in_one_place_it_has_a_dot() -> None:
    counts = range(9)
    assert "".join(dot for dot, _ in dots(counts, [False] * 9)) == " ·:⁖⁘⁙⁙⁙⁙"
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(rendered(compared(pairs([1000.0] * 9, [1000.0] * 9))))
    assert console.export_text().count("⁙") == 2, "one place for each arm, all cells alike"


@pytest.mark.parametrize("width", [80, 100, 120, 140, 200])
def test_no_figure_is_cut_however_narrow_the_terminal_is(two_groups: list[Cell], width: int) -> None:
    named = [cell._replace(labels=cell.labels | {"package": "main-9a44b2"}) for cell in two_groups]
    comparison = compared(named, by=("host", "package"))
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(rendered(comparison))
    text = console.export_text()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for group in comparison.rows:
        shift = group.shift
        figures = (
            figure(group.before.mean, comparison.metric),
            figure(group.after.mean, comparison.metric),
            signed(shift.hodges_lehmann),
            signed(shift.mean),
            interval_text(shift.hodges_lehmann_interval),
            interval_text(shift.mean_interval),
            band_text(group),
            f"p {group.p_value_adjusted:.3g}",
            str(group.verdict),
        )
        assert [one for one in figures if one not in text] == []
        assert all(label in text for label in group.labels)


def test_json_holds_every_cell(two_groups: list[Cell]) -> None:
    told = json.loads(json.dumps(document(compared(two_groups))))
    assert [(group["host"], group["pairs"], len(group["before"]["cells"])) for group in told["groups"]] == [
        ("node-0", 7, 7),
        ("node-1", 4, 4),
    ]
    assert told["overall"]["verdict"] == "better"
    assert [out["reason"] for out in told["left_out"]] == [
        "lost 500 executions, 1,000 stored",
        "no neighbour of the other arm",
    ]
    assert told["groups"][1]["hodges_lehmann_interval"] is None

"""Two runs or two ranks under one service.instance.id: their figures are summed, and the post-mortem says so first."""

import pytest

from engine_hooks.contract.execution import GraphExecution
from queries.findings.diagnosis import diagnose
from queries.findings.record import record_of
from queries.postmortem.machine import json_of
from queries.postmortem.markdown import markdown_of
from queries.postmortem.runs import Repeats, repeats_of
from queries.postmortem.story import Story, headline_of, story_of
from tests.fixtures.query_rows import MS, round_of
from tests.fixtures.replayed_cells import cell_of

RUN = tuple(round_of(n, 10 * n, "decode", 9.5, wall_ms=10) for n in range(300))


def story(executions: tuple[GraphExecution, ...]) -> Story:
    ordered = tuple(sorted(executions, key=lambda one: one.started_at))
    return story_of(cell_of(ordered), diagnose(record_of(ordered)))


def test_two_ranks_are_told_before_all_else() -> None:
    rank = tuple(one._replace(started_at=one.started_at + 3 * MS) for one in RUN)
    told = story((*RUN, *rank))
    assert told.headline.startswith(
        "Several runs or ranks send under one service.instance.id: tokens/s and executions count them together"
    )
    assert (
        told.chapters[0].sentences[0].text.startswith("300 submission numbers of this cell stand for executions that")
    )
    assert all(sentence.queries for sentence in told.chapters[0].sentences)
    assert markdown_of(told).startswith("## Several runs or ranks")


def test_tokens_of_all_ranks_count_as_the_executions_do() -> None:
    """As `cells` has it: all that was emitted, by the time from the first submission to the last completion."""
    run = tuple(one._replace(batch_tokens_emitted=6) for one in RUN)
    rank = tuple(one._replace(started_at=one.started_at + 3 * MS) for one in run)
    told = story((*run, *rank))
    both = dict(told.figures)
    tokens_per_s = 2 * 300 * 6 / ((2_990 + 3 + run[-1].duration_ns / MS) / 1e3)
    assert (both["tokens/s"], both["executions"]) == (f"{tokens_per_s:,.0f}", "600")
    assert f"| {tokens_per_s:,.0f} |" in markdown_of(told)
    assert json_of(told)["tokens_per_s"] == pytest.approx(tokens_per_s)
    assert json_of(told)["executions"] == 600


def test_a_run_begun_again_under_the_same_name_is_told() -> None:
    again = tuple(one._replace(started_at=one.started_at + 5_000 * MS) for one in RUN[:7])
    assert repeats_of((*RUN, *again)) == Repeats(of_several=7, copies=0)


def test_what_is_stored_twice_is_told_apart() -> None:
    told = story((*RUN, RUN[4], RUN[4], RUN[9]))
    assert told.headline.startswith("Executions are stored twice: tokens/s and executions count them twice")
    (sentence,) = told.chapters[0].sentences
    assert sentence.text.startswith("3 executions came again with the number and time of another: ")


def test_one_run_with_gaps_says_nothing_of_it() -> None:
    told = story(tuple(one for one in RUN if one.graph_sequence % 7))
    assert not repeats_of(RUN)
    assert "service.instance.id" not in markdown_of(told)
    assert told.headline == headline_of(told.diagnosis)

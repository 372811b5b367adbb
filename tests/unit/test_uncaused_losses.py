"""A cell that lost tokens without a cause in its record: the label stays, but nobody is told that it is healthy."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from rich.panel import Panel

from engine_hooks.contract.execution import GraphExecution
from queries.alerts.finding import in_words
from queries.findings.diagnosis import diagnose
from queries.findings.findings import BeingInPlain, Diagnosis, Kind, Verdict
from queries.findings.record import record_of
from queries.postmortem.markdown import markdown_of
from queries.postmortem.story import Story, cause_of, headline_of, story_of
from queries.postmortem.terminal import _headline
from tests.fixtures.query_rows import believing, round_of
from tests.fixtures.replayed_cells import cell_of

PLAIN_MS, SPECULATIVE_MS, WRONGLY_MS = 10, 20, 30


def engine_k(speculative: int, plain: int, again: int = 300) -> Iterator[GraphExecution]:
    """Without a stumble: plain decode gives 0.8 tokens a ms, S 1.0, and S is charged half as much again for a while."""
    at_ms = 0.0
    for n in range(speculative + plain + again):
        plainly = speculative <= n < speculative + plain
        took_ms = PLAIN_MS if plainly else SPECULATIVE_MS
        fields = {} if plainly else {"batch_tokens_drafted": 24, "batch_tokens_accepted": 12}
        yield round_of(
            n,
            at_ms,
            "decode" if plainly else "S",
            took_ms,
            batch_lanes=8,
            batch_tokens_emitted=8 if plainly else 20,
            **fields,
            **believing({"decode": (PLAIN_MS, 8.0), "S": (WRONGLY_MS if plainly else SPECULATIVE_MS, 20.0)}),
        )
        at_ms += took_ms


def story(speculative: int, plain: int) -> Story:
    executions = tuple(engine_k(speculative, plain))
    return story_of(cell_of(executions), diagnose(record_of(executions)))


def test_a_charge_that_nothing_lifted_is_told_and_not_called_healthy() -> None:
    told = story(500, 1200)
    assert (told.diagnosis.label, told.diagnosis.is_well) == (Kind.HEALTHY, False)
    assert told.headline == (
        "Much of the time in plain decode (43 %), and wrongly so; no cause in the record: S is charged up to 50 % above what"
        " it costs; 8.6 % of its throughput lost."
    )
    over = told.diagnosis.overcharge
    assert over
    assert (over.graph, over.charged_ns, over.cost_ns, over.decisions_turned) == ("S", 30_000_000, 20_000_000, 1200)
    assert (over.seconds_turned, over.tokens_lost) == (pytest.approx(12.0), pytest.approx(2400, abs=0.1))
    text = markdown_of(told)
    assert "### Charged more than it costs: 8.6 % lost (2,400 tokens)" in text
    assert "S was charged up to 30.0 ms for the 20.0 ms that it costs, from 10.0 s into it on; no execution" in text
    assert "1,200 decisions over 12.0 s took a worse graph." in text
    assert "healthy" not in text.lower()
    panel = _headline(told)
    assert isinstance(panel, Panel)
    assert panel.border_style == "red"


def test_one_that_is_not_stuck_is_told_as_well() -> None:
    told = story(1500, 300)
    assert not told.diagnosis.being_in_plain.stuck
    assert told.headline.startswith("No cause in the record: S is charged up to 50 % above what it costs; ")


def test_a_charge_from_before_the_cell() -> None:
    told = story(0, 600)
    assert told.headline.startswith(
        "Much of the time in plain decode (50 %), and wrongly so; no cause in the record: S is charged"
    )
    assert "above what it costs, since before it begins" in told.headline
    assert "that it costs, already when the cell begins; no execution" in markdown_of(told)


@pytest.mark.parametrize(("lost", "label"), [(100, Kind.HEALTHY), (508, Kind.ESTIMATE_INFLATION)])
def test_what_was_lost_is_blamed_for_a_charge_that_rises_right_after(lost: int, label: Kind) -> None:
    """S is charged as fairly as ever for the first ten rounds of plain decode, up to 509."""
    fair = believing({"decode": (PLAIN_MS, 8.0), "S": (SPECULATIVE_MS, 20.0)})
    executions = [one._replace(**fair) if one.graph_sequence < 510 else one for one in engine_k(500, 1200)]
    diagnosis = diagnose(record_of(one for one in executions if one.graph_sequence != lost))
    assert diagnosis.label is label


def test_less_than_a_second_is_nothing() -> None:
    told = story(1000, 90)
    assert told.diagnosis.overcharge is None
    assert told.headline == "Healthy."


def test_an_alert_is_told_the_same() -> None:
    told = in_words(story(500, 1200).diagnosis, "c1", datetime(2026, 11, 1, tzinfo=UTC))
    assert "no cause in the record: S is charged up to 50 % above what it costs: " in told
    assert "healthy" not in told


@pytest.mark.parametrize("loss_percent", [0.0, None, 5.0])
@pytest.mark.parametrize("stuck", [False, True])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_healthy_is_said_only_where_it_is_true(verdict: Verdict, stuck: bool, loss_percent: float | None) -> None:
    plain = BeingInPlain(verdict, 0.5 if stuck else 0.1, stuck=stuck, truly_best_fraction=None, spans=())
    diagnosis = Diagnosis(Kind.HEALTHY, (), (), plain, loss_percent, 0.0, 4000, 16.0)
    well = not loss_percent and (not stuck or verdict in (Verdict.RIGHT, Verdict.NO_CHOICE))
    assert ("healthy" in cause_of(diagnosis)) == ("healthy" in headline_of(diagnosis).lower()) == well

"""What commands count, and what a recorder says of its losses: in words, one of a thing in the singular."""

import re
from pathlib import Path

import pytest
from rich.table import Table

from engine_hooks.commands.counting import counted
from engine_hooks.recorder.losses import LossReason, in_words
from queries.catalogue import find
from queries.postmortem.terminal import table_of
from queries.postmortem.told import ToldRange
from queries.replay.result import ExactReplay, History, Replay
from queries.replay.words import caveats
from queries.terminal import answer_table
from tests.conftest import ROOT

RULES = ROOT / "queries" / "alerts" / "rules"


@pytest.mark.parametrize(("count", "said"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1234, "1,234 rows")])
def test_a_count_and_its_noun(count: int, said: str) -> None:
    assert counted(count, "row") == said


@pytest.mark.parametrize(("count", "said"), [(1, " 1 row;"), (2, " 2 rows;")])
def test_the_caption_of_an_answer(count: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    query = find("engines")
    row = {column.name: None for column in query.columns} | {"service_instance_id": "a" * 80}
    assert said in f" {answer_table(query, [row] * count).decode()}"


@pytest.mark.parametrize("path", sorted(RULES.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_rule_does_not_say_one_requests(path: Path) -> None:
    """Its texts are templates, which know no singular: how many stands behind what it counts."""
    assert not re.findall(r"\{\w+(?::,d)?\} (?:requests|executions)\b", path.read_text())


BY_HAND = re.compile(r"\{(?![A-Z_]+[:}])[^{}]*\} (?:cells|executions|decisions|rounds|requests|pairs|looks)\b")
"""A count and its noun, of which there may be one; what is no variable is a bound, and more than one."""


@pytest.mark.parametrize("path", sorted((ROOT / "queries").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_plural_is_written_by_hand(path: Path) -> None:
    assert not BY_HAND.findall(path.read_text())


def test_one_of_what_a_post_mortem_and_a_replay_count() -> None:
    assert str(table_of(ToldRange((), cells=1, flagged=0))) == "None of 1 cell is flagged; this is the newest."
    assert isinstance(titled := table_of(ToldRange((), cells=2, flagged=1)), Table)
    assert titled.title == "1 of 2 cells is flagged"
    history = History(executions=1, seconds=3.0, from_startup=False, executions_lost=1)
    exact = ExactReplay(decisions=(), decisions_unusable=1, history=history)
    cell = Replay("r", "engine", "cell", "drained_share", "", {}, 0, 1, exact, None)
    said = " ".join(caveats(cell))
    for one in ("learnt from 1 execution in 3 s", "Missing in the record: 1 execution,", "is recorded: 1 decision."):
        assert one in said


def test_losses_are_said_in_words() -> None:
    losses = dict.fromkeys(LossReason, 0) | {LossReason.STOPPED: 237, LossReason.BUFFER_FULL: 1200}
    assert in_words(losses) == "1,200 because the buffer was full, 237 not acknowledged by the end"
    assert in_words(dict.fromkeys(LossReason, 0)) == ""


@pytest.mark.parametrize("reason", LossReason)
def test_every_reason_has_its_words(reason: LossReason) -> None:
    said = in_words({reason: 1})
    assert said.startswith("1 ")
    assert reason not in said or reason == LossReason.REFUSED

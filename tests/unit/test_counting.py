"""What commands count, and what a recorder says of its losses: in words, one of a thing in the singular."""

import re
from pathlib import Path

import pytest

from engine_hooks.commands.counting import counted
from engine_hooks.recorder.losses import LossReason, in_words
from queries.catalogue import find
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


def test_losses_are_said_in_words() -> None:
    losses = dict.fromkeys(LossReason, 0) | {LossReason.STOPPED: 237, LossReason.BUFFER_FULL: 1200}
    assert in_words(losses) == "1,200 because the buffer was full, 237 not sent by the end"
    assert in_words(dict.fromkeys(LossReason, 0)) == ""


@pytest.mark.parametrize("reason", LossReason)
def test_every_reason_has_its_words(reason: LossReason) -> None:
    said = in_words({reason: 1})
    assert said.startswith("1 ")
    assert reason not in said or reason == LossReason.REFUSED

"""What the evaluator keeps on disk: one evaluator a directory, and a history that waits for the collector."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from queries.alerts.book import Change, Entry
from queries.alerts.errors import AlertStateError
from queries.alerts.history import HistorySender, row_of
from queries.alerts.memory import Memory, remembered
from queries.alerts.states import Standing, State
from queries.errors import CallError, OtherStoreError, QueriesError, UnreachableError
from tests.fixtures.alert_evaluators import START, waited_for


def test_one_evaluator_a_directory(tmp_path: Path, running: ExitStack) -> None:
    running.callback(Memory(tmp_path).close)
    with pytest.raises(AlertStateError, match="another evaluator"):
        Memory(tmp_path)


def change(n: int) -> Change:
    return Change(Entry("TooMuch", (("alertname", "TooMuch"), ("n", str(n))), Standing(State.FIRING)), State.INACTIVE)


@pytest.mark.parametrize("wrong", [UnreachableError("away"), OtherStoreError("elsewhere")], ids=["away", "another's"])
def test_history_waits_for_the_collector_and_is_sent_in_the_same_batches(
    tmp_path: Path, running: ExitStack, wrong: QueriesError
) -> None:
    memory = Memory(tmp_path)
    running.callback(memory.close)
    memory.keep([], [row_of(change(0), START)], {})
    first = memory.batch()
    memory.keep([], [row_of(change(1), START)], {})
    assert memory.batch() == first, "sent again as it was: the store knows it by its content"
    attempts: list[list[dict[str, Any]]] = []

    def store(rows: list[dict[str, Any]]) -> None:
        attempts.append(rows)
        if len(attempts) == 1:
            raise wrong

    sender = HistorySender(memory, store, pause_s=0.01)
    running.callback(sender.stop)
    waited_for(lambda: memory.batch() is None)
    assert [[row["labels"]["n"] for row in rows] for rows in attempts] == [["0"], ["0"], ["1"]]
    assert remembered(tmp_path)[1]["history_rows_stored"] == 2


def test_history_that_is_refused_holds_up_no_other(tmp_path: Path, running: ExitStack) -> None:
    memory = Memory(tmp_path)
    running.callback(memory.close)
    memory.keep([], [row_of(change(0), START)], {})

    def store(_rows: list[dict[str, Any]]) -> None:
        raise CallError("column finding is missing")

    sender = HistorySender(memory, store, pause_s=0.01)
    running.callback(sender.stop)
    waited_for(lambda: memory.batch() is None)
    assert remembered(tmp_path)[1] == {"history_rows_refused": 1}


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(QueriesError, match="TACHOGRAPH_DATA_DIR"):
        Memory(tmp_path / "file" / "alerts")

"""What a diagnosis says beside an alert: of which cell, once, and without holding it up."""

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from queries.alerts.finding import Findings, in_words
from queries.errors import UnreachableError
from queries.findings.findings import BeingInPlain, Diagnosis, Kind, Verdict
from tests.fixtures.alert_evaluators import DEADLINE_S, START, Evaluating, row, rule, waited_for


def test_the_finding_is_told_with_the_alert(tmp_path: Path, running: ExitStack) -> None:
    about = rule(finding_of="cell", identity=["service_instance_id"])
    one = Evaluating(tmp_path, running, [about], findings=Findings(lambda instance, cell: f"{instance}/{cell} did it"))
    one.source.answers["TooMuch"] = [row(2.0, service_instance_id="e", cell="c1")]
    one.after(10)
    assert one.told()[0].annotations["finding"] == "e/c1 did it"
    one.source.answers["TooMuch"] = [row(3.0, service_instance_id="e", cell="c2")]
    one.after(10)
    assert one.told()[0].annotations["finding"] == "e/c1 did it", "what woke somebody stays"
    rows = one.memory.batch()
    assert rows
    assert rows.rows[0]["annotations"]["finding"] == "e/c1 did it"


def test_a_finding_that_hangs_or_fails_blocks_no_alert(tmp_path: Path, running: ExitStack) -> None:
    release = threading.Event()
    running.callback(release.set)

    def tell(instance: str, cell: str) -> str:
        if instance == "fails":
            raise UnreachableError("no ClickHouse answers")
        assert release.wait(DEADLINE_S)
        return "late, but here"

    about = rule(finding_of="cell", identity=["service_instance_id"])
    one = Evaluating(tmp_path, running, [about], findings=Findings(tell, wait_s=0.1))
    one.source.answers["TooMuch"] = [row(2.0, service_instance_id=name, cell="c") for name in ("fails", "hangs")]
    one.after(10)
    told = {alert.labels["service_instance_id"]: alert.annotations.get("finding") for alert in one.told()}
    assert told == {"fails": "none: no ClickHouse answers", "hangs": None}
    release.set()
    one.after(10)
    waited_for(lambda: one.after(10) == () and all("finding" in alert.annotations for alert in one.told()))
    batch = one.memory.batch()
    assert batch
    row_of_it = batch.rows[-1]
    assert (row_of_it["state_before"], row_of_it["state"]) == ("firing", "firing"), (
        "a late finding has a row of its own"
    )
    assert row_of_it["annotations"]["finding"] == "late, but here"


def test_a_finding_and_the_link_beside_it_are_of_one_cell(tmp_path: Path, running: ExitStack) -> None:
    """Whichever cell the alert is about by the time that the finding is there, and ever after."""
    release = threading.Event()
    running.callback(release.set)

    def tell(instance: str, cell: str) -> str:
        assert release.wait(DEADLINE_S)
        return f"{cell} did it"

    about = rule(finding_of="cell", identity=["service_instance_id"], link="cell?cell={cell}")
    one = Evaluating(tmp_path, running, [about], findings=Findings(tell, wait_s=0.0))
    one.source.answers["TooMuch"] = [row(2.0, service_instance_id="e", cell="c1")]
    one.after(10)
    assert "finding" not in one.told()[0].annotations
    one.source.answers["TooMuch"] = [row(3.0, service_instance_id="e", cell="c2")]
    one.after(10)
    assert one.told()[0].generator_url == "http://dashboards/cell?cell=c2"
    release.set()
    waited_for(lambda: one.after(10) == () and "finding" in one.told()[0].annotations)
    for cell in ("c2", "c3"):
        one.source.answers["TooMuch"] = [row(4.0, service_instance_id="e", cell=cell)]
        one.after(10)
        (told,), (entry,) = one.told(), one.evaluator.entries.values()
        assert (told.annotations["finding"], told.generator_url) == ("c1 did it", "http://dashboards/cell?cell=c1")
        assert (told.annotations["summary"], entry.about["cell"]) == ("4.0 on a", "c1")


def test_a_cell_that_is_healthy_gives_no_finding_and_the_next_one_is_looked_at(
    tmp_path: Path, running: ExitStack
) -> None:
    looked_at = []

    def tell(instance: str, cell: str) -> str:
        looked_at.append(cell)
        return "" if cell == "well" else f"{cell} did it"

    about = rule(finding_of="cell", identity=["service_instance_id"])
    one = Evaluating(tmp_path, running, [about], findings=Findings(tell, wait_s=DEADLINE_S))
    one.source.answers["TooMuch"] = [row(2.0, service_instance_id="e", cell="well")]
    one.over(30)
    assert "finding" not in one.told()[0].annotations
    assert looked_at == ["well"], "not again and again"
    one.source.answers["TooMuch"] = [row(2.0, service_instance_id="e", cell="sick")]
    one.after(10)
    assert one.told()[0].annotations["finding"] == "sick did it"


@pytest.mark.parametrize("label", list(Kind))
def test_a_finding_says_of_which_cell_it_is_and_never_that_it_is_healthy(label: Kind) -> None:
    plain = BeingInPlain(Verdict.NONE, 0.0, stuck=False, truly_best_fraction=None, spans=())
    diagnosis = Diagnosis(label, (), (), plain, 0.0, 320.0, 4000, 16.0)
    text = in_words(diagnosis, "c1", START)
    if label is Kind.HEALTHY:
        assert text == ""
    else:
        assert text.startswith(f"Cell c1, as of {START:%Y-%m-%d %H:%M:%S} UTC:\n")
        assert "20 tokens/s lost in that cell (320 in 16 s)" in text

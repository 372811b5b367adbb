"""`tachograph simulate experiment`, `scenarios` and `cell`: documents, seeds, cores, files and wrong names."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from engine_hooks.commands.simulate.cell import cell
from engine_hooks.commands.simulate.choices import CELL_SCENARIOS, models_of
from engine_hooks.commands.simulate.errors import SimulateCommandError
from engine_hooks.commands.simulate.experiment import experiment
from engine_hooks.commands.simulate.scenarios import scenarios
from engine_hooks.cost_model.registry import COST_MODELS
from engine_hooks.errors import SendError
from engine_hooks.recorder.client import OtlpClient
from engine_hooks.recorder.connection import Answer, NotTakenError
from engine_hooks.simulator.experiment import PACKAGES
from engine_hooks.simulator.invented import INVENTED
from engine_hooks.simulator.scenarios import SCENARIOS
from tests.fixtures.otlp_files import requests_in
from tests.fixtures.trace_service import trace_service

Printed = Callable[[], Any]


class Nowhere(NamedTuple):
    """The one setting of `cell`."""

    otlp_endpoint: str = "http://127.0.0.1:1"


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """The JSON that was printed since the last time."""
    return lambda: json.loads(capsys.readouterr().out)


def test_experiment_document(printed: Printed) -> None:
    experiment(["exposed_mean,drained_share"], replicates=1, jobs=1, as_json=True)
    document = printed()
    assert (document["seed"], document["replicates"]) == (0, 1)
    assert list(document["models"]) == ["exposed_mean", "drained_share"]
    for model in document["models"].values():
        assert len(model["stuck"]) == 1
        assert list(model["by_package"]) == [package.name for package in PACKAGES]
        assert sum(package["stuck"][0] for package in model["by_package"].values()) == model["stuck"][0]
        means = [package["tokens_per_second"] for package in model["by_package"].values()]
        assert sum(means) / 4 == pytest.approx(model["tokens_per_second"])
        assert list(model["by_lanes"]) == ["1", "8", "16"]
    forty = [one for one in document["comparisons"] if one["cells"] == "all 40"]
    assert [(one["after"], one["pairs"]) for one in forty] == [("drained_share", 40)]


def test_the_cells_come_in_mirrored_order(printed: Printed) -> None:
    experiment(["exposed_mean,drained_share"], replicates=1, jobs=1, as_json=True)
    cells = [one for one in printed()["cells"] if one["package"] == "frank1 B"]
    assert [one["position"] for one in cells] == list(range(20))
    assert [one["model"] for one in cells][:4] == ["exposed_mean", "drained_share", "drained_share", "exposed_mean"]
    assert all(first["seed"] == second["seed"] for first, second in zip(cells[::2], cells[1::2], strict=True))


def test_figures_depend_on_the_seed_and_not_on_the_cores(printed: Printed) -> None:
    def run(seed: int, jobs: int) -> Any:
        chosen = ["host 1.2x on all rounds"]
        scenarios(["idle_gap"], scenario=chosen, replicates=10, seed=seed, jobs=jobs, as_json=True)
        return printed()

    alone = run(0, 1)
    assert run(0, 2) == alone
    assert run(1, 1) != alone


def test_scenarios_document(printed: Printed) -> None:
    names = ["clean", "bursts of 5 delays every 10 s"]
    scenarios(["exposed_mean"], more=["idle_gap"], scenario=names, replicates=3, jobs=1, as_json=True)
    document = printed()
    assert list(document["regret_percent"]) == names
    for by_model in document["regret_percent"].values():
        assert list(by_model) == ["exposed_mean", "idle_gap"]
        for lost in by_model.values():
            low, high = lost["ci95"]
            assert low <= lost["mean"] <= high
    means = [by_model["exposed_mean"]["mean"] for by_model in document["regret_percent"].values()]
    assert document["worst"]["exposed_mean"] == max(means)
    assert document["average"]["exposed_mean"] == pytest.approx(sum(means) / 2)


def test_one_replicate_has_no_interval(printed: Printed) -> None:
    scenarios(["idle_gap"], scenario=["clean"], replicates=1, jobs=1, as_json=True)
    assert printed()["regret_percent"]["clean"]["idle_gap"]["ci95"] is None


def test_printed_tables(capsys: pytest.CaptureFixture[str]) -> None:
    scenarios(["idle_gap"], scenario=["clean"], replicates=2, jobs=1)
    table = capsys.readouterr().out
    assert "clean" in table
    assert "worst" in table
    assert "average" in table
    assert "4 cells of 60 s, seed 0, in " in table
    experiment(["exposed_mean", "drained_share"], replicates=1, jobs=1)
    table = capsys.readouterr().out
    assert "2370 -> 2464 (8 -> 0)" in table
    assert "2448 -> 2469 (16 -> 0)" in table
    assert "stuck of 40 in each replicate: " in table


def test_a_cell_written_to_a_file(tmp_path: Path, printed: Printed) -> None:
    file = tmp_path / "cell.pb.gz"
    cell(Nowhere(), model="exposed_mean", seed=3, output=file, as_json=True)
    summary = printed()
    requests = [ExportTraceServiceRequest.FromString(body) for body in requests_in(file)]
    spans = [span for request in requests for span in request.resource_spans[0].scope_spans[0].spans]
    assert len(spans) == summary["executions"]
    assert len({span.trace_id for span in spans}) == 1
    assert sum(span.name in {"execute_graph decode", "execute_graph P128"} for span in spans) > 100
    assert set(summary["chosen"]) <= {"decode", "P64", "P108", "P128"}
    assert list(tmp_path.iterdir()) == [file]

    again = tmp_path / "again.pb"
    cell(Nowhere(), model="exposed_mean", seed=3, output=again)
    assert again.read_bytes() == gzip.decompress(file.read_bytes())


def test_a_cell_of_other_parameters(printed: Printed) -> None:
    cell(Nowhere(), scenario="clean", seconds=10, acceptance=0.0, delay_rate=0.0, as_json=True)
    summary = printed()
    assert summary["seconds"] == 10
    assert summary["plain_fraction"] > 0.9


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (lambda: models_of(["idle_gap,mean"], None, ()), "no cost model is called 'mean'; there are exposed_mean, "),
        (lambda: cell(Nowhere(), model="mean"), "no cost model is called 'mean'; there are oracle, exposed_mean, "),
        (
            lambda: cell(Nowhere(), scenario="Host 1.5"),
            r"^no scenario is called 'Host 1\.5'; nearest: host 1\.5x on speculative rounds; host 1\.5x on all rounds; "
            r"host 1\.5x on speculative rounds until 20 s; `tachograph simulate cell --list` prints all \d\d$",
        ),
        (
            lambda: cell(Nowhere(), scenario="graammar lane"),
            r"'graammar lane'; nearest: grammar lane; `tachograph simulate cell --list` prints all",
        ),
        (lambda: cell(Nowhere(), scenario=""), r"called ''; `tachograph simulate cell --list` prints all"),
        (
            lambda: scenarios(scenario=["prefil *"]),
            r"^no scenario is called 'prefil \*'; nearest: prefill 5 Hz; .*`tachograph simulate scenarios --list` prints all",
        ),
        (
            lambda: scenarios(scenario=["clean"], invented=True),
            r"^no scenario is called 'clean'; .*`tachograph simulate scenarios --invented --list` prints all",
        ),
        (lambda: cell(Nowhere(), starts="soon"), "--starts is 'soon': give `now` or a time like "),
        (lambda: cell(Nowhere(), output=Path("/nowhere/x.gz")), "/nowhere/x.gz: No such file.*name another --output"),
    ],
)
def test_one_line_on_what_is_wrong(wrong: Callable[[], object], line: str) -> None:
    with pytest.raises(SimulateCommandError, match=line) as error:
        wrong()
    assert "\n" not in str(error.value)


def test_models_are_given_in_a_row_or_with_commas() -> None:
    assert models_of(["idle_gap"], ["exposed_mean", "idle_gap"], ()) == ("idle_gap", "exposed_mean")
    assert models_of(["idle_gap,exposed_mean"], None, ()) == ("idle_gap", "exposed_mean")
    assert models_of(None, None, tuple(COST_MODELS)) == tuple(COST_MODELS)


def test_every_scenario_of_the_table_has_a_name_of_its_own() -> None:
    assert all(name == scenario.name for name, scenario in SCENARIOS.items())


def test_the_names_of_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    cell(Nowhere(), as_list=True)
    assert capsys.readouterr().out.splitlines() == list(CELL_SCENARIOS)
    scenarios(as_list=True)
    assert capsys.readouterr().out.splitlines() == list(SCENARIOS)
    scenarios(invented=True, as_list=True, as_json=True)
    assert json.loads(capsys.readouterr().out) == list(INVENTED)


def test_what_was_taken_before_the_collector_went_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again with the start that is named, the same requests come in the same bytes."""
    sent: list[bytes] = []

    def for_two_requests(_: OtlpClient, body: bytes) -> Answer:
        if len(sent) == 2:
            raise NotTakenError("UNAVAILABLE", "Connection refused", retryable=True, is_certain=True)
        sent.append(body)
        return Answer(0, "")

    monkeypatch.setattr(OtlpClient, "send", for_two_requests)
    with pytest.raises(SendError) as told:
        cell(Nowhere(), seconds=40, send=True)
    said = re.fullmatch(
        r"took 1,024 of (\d),(\d{3}) executions, then: the collector at http://127\.0\.0\.1:1 did not take the executions "
        r"\(UNAVAILABLE: Connection refused\): start it or set TACHOGRAPH_OTLP_ENDPOINT, then send again by --starts "
        r"(\S+Z) and all else as before: those are stored once; another start is another engine instance",
        str(told.value),
    )
    assert said
    assert told.value.exit_code == 1
    first = list(sent)
    sent.clear()
    with pytest.raises(SendError):
        cell(Nowhere(), seconds=40, send=True, starts=said[3])
    assert sent == first


def test_where_nothing_was_taken_nothing_else_is_said() -> None:
    with pytest.raises(SendError, match=r"^the collector at http://127\.0\.0\.1:1 did not take .*, then send again$"):
        cell(Nowhere(), seconds=5, send=True)


@pytest.mark.parametrize(("answered", "taken"), [(0, "some, perhaps,"), (1, "at least 512")])
def test_what_may_be_stored_without_an_answer_is_no_less_and_is_sent_again_by_the_same_start(
    answered: int, taken: str
) -> None:
    """The collector was killed between storing a request and answering it."""
    with trace_service() as service:
        service.answers_lost_after = answered
        with pytest.raises(SendError) as told:
            cell(Nowhere(service.endpoint), seconds=20, send=True)
        said = re.fullmatch(
            rf"took {taken} of (\S+) executions, then: the collector at {service.endpoint} did not"
            r" answer \(UNAVAILABLE: Socket closed\): start it .*, then send again by --starts (\S+Z) and all else as"
            r" before: those are stored once; another start is another engine instance",
            str(told.value),
        )
        assert said, str(told.value)
        stored = {request.SerializeToString() for request in service.requests}
        assert len(stored) == answered + 1
        service.requests.clear()
        service.answers_lost_after = None
        cell(Nowhere(service.endpoint), seconds=20, send=True, starts=said[2])
    again = [request.SerializeToString() for request in service.requests]
    assert stored <= set(again)
    assert f"{len(service.spans):,}" == said[1]

"""`tachograph replay` on labelled cells that a collector stored: for the eye, for machines, kept in tables of their own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clickhouse_connect
import httpx
import pytest
from clickhouse_connect.driver.client import Client

from queries.replay.replaying import Form, replayed
from tests.fixtures.otlp_files import requests_in
from tests.fixtures.running import Addresses, running_collector, tachograph
from tests.integration.test_derived_rows import door_to

CELL, OTHER = "r023", "r008"
PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture(scope="module")
def truth(cases: Path) -> dict[str, dict[str, Any]]:
    return {cell["id"]: cell for cell in json.loads((cases / "cells" / "truth.json").read_text())["cells"]}


@pytest.fixture(scope="module")
def fleet(cases: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with running_collector(tmp_path_factory.mktemp("replays")) as addresses, httpx.Client() as client:
        for cell in (CELL, OTHER):
            for request in requests_in(cases / "cells" / f"{cell}.otlp.gz"):
                assert client.post(addresses.otlp_http, content=request, headers=PROTOBUF).status_code == 200
        yield addresses


def rows(at: Addresses, sql: str) -> list[tuple[Any, ...]]:
    with clickhouse_connect.get_client(dsn=at.clickhouse_url) as client:
        return list(client.query(sql).result_rows)


def test_a_stuck_cell_is_replayed_told_and_stored(fleet: Addresses, truth: dict[str, dict[str, Any]]) -> None:
    outcome = tachograph(fleet, "replay", truth[CELL]["cell_id"], "--seeds", "4", "--json", "--store")
    assert outcome.returncode == 0, outcome.stderr
    told = json.loads(outcome.stdout)
    exact, loop = told["exact"], told["closed_loop"]
    poisoned = truth[CELL]["plain_spans"][0]
    assert f"sequence {poisoned['from_sequence']}" in exact["first_difference"]
    assert (exact["from_startup"], exact["caveats"], exact["decisions_cold"]) == (True, [], 0)
    live = truth[CELL]["tokens_per_s_same_seed"]["drained_share"]
    assert loop["is_simulation"]
    assert loop["tokens_per_s"] == pytest.approx(live, rel=0.01)
    assert loop["tokens_per_s_low"] < live < loop["tokens_per_s_high"]

    stored = rows(fleet, f"SELECT form, results FROM replays WHERE replay_id = '{told['replay_id']}' ORDER BY form")  # noqa: S608
    assert [form for form, _ in stored] == ["closed_loop", "exact"]
    assert stored[0][1]["tokens_per_s"] == loop["tokens_per_s"]
    ((decisions, different),) = rows(
        fleet,
        "SELECT count(), countIf(graph_name != replayed_graph_name) FROM replay_decisions"  # noqa: S608
        f" WHERE replay_id = '{told['replay_id']}'",
    )
    assert (decisions, different) == (exact["decisions"], exact["decisions_different"])


def test_replaying_the_model_that_was_in_charge_gives_every_stored_estimate(
    fleet: Addresses, truth: dict[str, dict[str, Any]]
) -> None:
    for cell in (CELL, OTHER):
        known = truth[cell]
        instance = known["resource"]["service.instance.id"]
        replay = replayed(fleet.clickhouse_url, instance, known["cell_id"], known["cost_model"], form=Form.EXACT)
        assert replay.exact
        assert (replay.exact.agreement, replay.exact.different) == (1.0, ())
        assert len(replay.exact.ordinary) == known["decisions"]["ordinary"]


def test_for_the_eye(fleet: Addresses, truth: dict[str, dict[str, Any]]) -> None:
    outcome = tachograph(fleet, "replay", truth[CELL]["cell_id"], "--seeds", "2", "--no-store")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    for said in ("drained_share in place of exposed_mean", "would have been others", "a simulation fitted", "±", "█"):
        assert said in outcome.stdout


def test_without_a_collector_the_result_is_shown_and_one_line_says_so(
    fleet: Addresses, truth: dict[str, dict[str, Any]]
) -> None:
    nowhere = ("--rows-url", "http://127.0.0.1:9", "--form", "exact")
    shown = tachograph(fleet, "replay", truth[CELL]["cell_id"], *nowhere)
    assert shown.returncode == 0
    assert "would have been others" in shown.stdout
    (line,) = shown.stderr.splitlines()
    assert line.startswith("tachograph: not stored: no collector answers")
    insisted = tachograph(fleet, "replay", truth[CELL]["cell_id"], *nowhere, "--store")
    assert insisted.returncode == 3


def test_a_replay_is_stored_where_its_cell_is_or_not_at_all(
    fleet: Addresses, truth: dict[str, dict[str, Any]], clickhouse: Client, data_dir: Path
) -> None:
    with door_to(clickhouse, data_dir) as elsewhere:
        asked = ("replay", truth[CELL]["cell_id"], "--form", "exact", "--rows-url", elsewhere.url)
        shown, insisted = tachograph(fleet, *asked), tachograph(fleet, *asked, "--store")
    assert (shown.returncode, insisted.returncode) == (0, 2)
    told = f"the collector at {elsewhere.url} does not store in {fleet.clickhouse_url}: name the one that does by TACHOGRAPH_ROWS_URL"
    assert shown.stderr == f"tachograph: not stored: {told}\n"
    assert insisted.stderr == f"tachograph: {told}\n"
    assert clickhouse.query("SELECT count() FROM replay_decisions").first_row == (0,)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent"], "no execution of cell absent is stored"),
        (["bench-r023", "--engine", "nobody"], "no execution of cell bench-r023 of engine nobody is stored"),
        (["bench-r023", "--model", "best"], "no cost model is called 'best'; there are exposed_mean"),
        (["bench-r023", "--seeds", "1"], "one run alone states no error"),
    ],
)
def test_a_wrong_call_is_one_line(fleet: Addresses, arguments: list[str], says: str) -> None:
    outcome = tachograph(fleet, "replay", *arguments)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    (line,) = outcome.stderr.splitlines()
    assert says in line

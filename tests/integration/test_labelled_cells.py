"""The seventeen cells whose cause is known: sent to the collector, then asked of the command line, as a user would."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.otlp_files import requests_in
from tests.fixtures.running import Addresses, running_collector, tachograph

PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture(scope="module")
def truth(cases: Path) -> list[dict[str, Any]]:
    return list(json.loads((cases / "cells" / "truth.json").read_text())["cells"])


@pytest.fixture(scope="module")
def fleet(cases: Path, truth: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with running_collector(tmp_path_factory.mktemp("labelled")) as addresses, httpx.Client() as client:
        for cell in truth:
            for request in requests_in(cases / "cells" / cell["file"]):
                answer = client.post(addresses.otlp_http, content=request, headers=PROTOBUF)
                assert (answer.status_code, answer.content) == (200, b"")
        yield addresses


def asked(fleet: Addresses, name: str, *parameters: str) -> list[dict[str, Any]]:
    outcome = tachograph(fleet, "query", name, "--format", "json", *parameters)
    assert outcome.returncode == 0, outcome.stderr
    return list(json.loads(outcome.stdout))


def instance(cell: dict[str, Any]) -> str:
    return str(cell["resource"]["service.instance.id"])


def test_cells_gives_each_plain_fraction(fleet: Addresses, truth: list[dict[str, Any]]) -> None:
    fractions = {row["service_instance_id"]: row["plain_fraction"] for row in asked(fleet, "cells")}
    expected = {instance(cell): cell["plain_fraction"]["by_time_recorded"] for cell in truth}
    assert fractions == pytest.approx(expected, abs=1e-9)


def test_every_recorded_execution_is_counted_and_every_lost_one_missed(
    fleet: Addresses, truth: list[dict[str, Any]]
) -> None:
    counted = {row["service_instance_id"]: (row["executions"], row["executions_lost"]) for row in asked(fleet, "cells")}
    assert counted == {instance(cell): (cell["sequence"]["recorded"], len(cell["sequence"]["lost"])) for cell in truth}


def test_stuck_plain_lists_exactly_the_stuck_cells(fleet: Addresses, truth: list[dict[str, Any]]) -> None:
    stuck = {row["service_instance_id"] for row in asked(fleet, "stuck_plain")}
    assert stuck == {instance(cell) for cell in truth if cell["stuck"]}
    assert not stuck & {instance(cell) for cell in truth if not cell["has_speculative"]}


def test_inflated_are_exactly_the_cells_whose_fault_it_is(fleet: Addresses, truth: list[dict[str, Any]]) -> None:
    inflated = {row["service_instance_id"] for row in asked(fleet, "cells") if row["inflated"]}
    assert inflated == {instance(cell) for cell in truth if cell["fault"] == "estimate_inflation"}

"""`tachograph replay` and the page What if on stored cells of next to nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from clickhouse_connect.driver.client import Client

from dashboards.links import WHAT_IF_PAGE, cell_parameters
from dashboards.reading import outcomes
from engine_hooks.contract.execution import EngineResource
from queries.commands.replay import FormName, replay
from queries.errors import CallError
from tests.fixtures.databases import database, read_only_url
from tests.fixtures.pages import page_opened, said
from tests.fixtures.query_rows import insert
from tests.unit.test_replay_thin_records import thin

THIN = {"one": ("as recorded", 1), "three": ("one graph", 3), "bare": ("no batch", 40), "prefills": ("prefills", 2)}
LACKS = {
    "one": "the record of cell one is too short, 1 decode round of the 8 that a fit needs",
    "three": "the record of cell three is too short, 3 decode rounds of the 8 that a fit needs",
    "bare": "cell bare records no drafts of P128",
}
NOTHING = "cell prefills records of no decision what it was chosen from: there is nothing to replay"


class Named(NamedTuple):
    clickhouse_url: str
    rows_url: str = ""


@pytest.fixture(scope="module")
def url(store: Client, data_dir: Path) -> Iterator[str]:
    with database(store) as name:
        for cell, (kind, length) in THIN.items():
            marked = (one._replace(cell_id=cell) for one in thin(kind, length))
            insert(store, marked, EngineResource(f"engine-{cell}", host_name="node-1"))
        with read_only_url(name, data_dir) as served:
            yield served


def printed(url: str, cell: str, form: FormName, capsys: pytest.CaptureFixture[str]) -> str:
    replay(Named(url), cell, form=form, seeds=2, store=False)
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("cell", LACKS)
def test_the_command_answers_the_exact_form_and_says_in_one_line_why_there_is_no_simulation(
    url: str, cell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    both = printed(url, cell, "both", capsys)
    assert f"Not simulated: {LACKS[cell]}." in both
    assert both.startswith(printed(url, cell, "exact", capsys))
    assert "would have been others" in both
    with pytest.raises(CallError) as refused:
        replay(Named(url), cell, form="closed-loop", seeds=2, store=False)
    assert str(refused.value).startswith(f"{LACKS[cell]}: it cannot be simulated")


@pytest.mark.parametrize("form", ["exact", "closed-loop", "both"])
def test_where_no_decision_is_recorded_every_form_is_refused_alike(url: str, form: FormName) -> None:
    with pytest.raises(CallError) as refused:
        replay(Named(url), "prefills", form=form, seeds=2, store=False)
    assert str(refused.value) == NOTHING


@pytest.mark.parametrize("cell", THIN)
def test_the_page_says_the_same(url: str, cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "SEEDS", 2)
    parameters = cell_parameters(f"engine-{cell}", cell)
    told = said(page_opened(WHAT_IF_PAGE, url, monkeypatch, simulate="true", **parameters))
    if cell == "prefills":
        assert f"Nothing to replay: {NOTHING}." in told
        return
    assert f"This cell cannot be simulated: {LACKS[cell]}." in told
    assert "drained_share would have made" in told
    assert "--form" not in told

"""Several runs under one service.instance.id at the same time: the doctor and the Fleet page name the instance."""

import pytest
from clickhouse_connect.driver.client import Client

from collector.doctor.check import Verdict
from collector.doctor.store_checks import check_instances
from dashboards.links import FLEET_PAGE
from queries.postmortem.told import told
from queries.runner import run
from tests.fixtures.arrivals import arrive
from tests.fixtures.pages import page_opened, said
from tests.fixtures.query_rows import MS, insert, round_of


def test_the_doctor_names_them(clickhouse: Client) -> None:
    arrive(clickhouse, "alone", every_s=1.0, count=100)
    assert check_instances(clickhouse).verdict is Verdict.OK
    for host in ("rank-0", "rank-1"):
        arrive(clickhouse, host, engine="shared", every_s=1.0, count=100)
    found = check_instances(clickhouse)
    assert found.verdict is Verdict.WARNING
    assert found.finding == "submission numbers come more than once within 30 s: shared: 100 executions"
    assert found.advice
    for number in range(4):
        for _ in range(2):
            arrive(clickhouse, "twice", engine=f"stored twice {number}", count=2, every_s=1.0)
    told = check_instances(clickhouse).finding
    assert told.endswith(
        "shared: 100 executions; stored twice 0: 2 executions; stored twice 1: 2 executions; and 2 more"
    )


def test_what_ended_an_hour_ago_is_not_told(clickhouse: Client) -> None:
    for host in ("rank-0", "rank-1"):
        arrive(clickhouse, host, engine="shared", first_s_ago=7000.0)
    assert check_instances(clickhouse).verdict is Verdict.OK


@pytest.mark.parametrize("query", ["cells", "live_cells"])
def test_a_post_mortem_counts_the_tokens_that_queries_count(
    clickhouse: Client, clickhouse_url: str, query: str
) -> None:
    run_of_one = [round_of(n, 10 * n, "decode", 9.5, wall_ms=10) for n in range(1000)]
    rank = [one._replace(started_at=one.started_at + 3 * MS, batch_tokens_emitted=7) for one in run_of_one]
    insert(clickhouse, run_of_one)
    insert(clickhouse, rank)
    (cell,) = run(query, clickhouse_url, "rows", last_s=0)
    story = told(clickhouse_url, cell["cell"], cell["service_instance_id"]).story
    assert story.executions == cell["executions"] == 2000
    assert story.tokens_per_s == pytest.approx(cell["tokens_per_s"])
    assert cell["tokens_per_s"] == pytest.approx(1000 * (4 + 7) / 10.003)
    assert dict(story.figures)["tokens/s"] == f"{cell['tokens_per_s']:,.0f}"


def test_the_fleet_page_names_those_that_it_shows(
    clickhouse: Client, clickhouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrive(clickhouse, "alone", every_s=1.0, count=100)
    assert "service.instance.id" not in said(page_opened(FLEET_PAGE, clickhouse_url, monkeypatch, range="all"))
    for host in ("rank-0", "rank-1"):
        arrive(clickhouse, host, engine="shared", every_s=1.0, count=100)
    told = said(page_opened(FLEET_PAGE, clickhouse_url, monkeypatch, range="30 min"))
    assert (
        "shared: submission numbers come more than once. Several runs or ranks send under one service.instance.id"
        in told
    )
    other = said(page_opened(FLEET_PAGE, clickhouse_url, monkeypatch, range="30 min", host="alone"))
    assert "service.instance.id" not in other

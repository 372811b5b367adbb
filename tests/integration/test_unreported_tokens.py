"""Engines need not report tokens: then nothing is known of them. One that reports 0 emitted none, which is something else."""

from datetime import timedelta

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.contract.span import EXECUTION_COLUMNS
from tachograph import stuck_line
from tests.fixtures.asking import START, ask
from tests.fixtures.query_rows import ENGINE, insert, round_of, row_of

ANY_LENGTH = {"minimum_decoding_s": 0}
SILENT = ENGINE._replace(service_instance_id="silent")


def stuck_cell(tokens: int | None, begin_ms: int = 0) -> list[GraphExecution]:
    """100 ms, one plain round in two."""
    graphs = ("P128", "decode") * 5
    return [
        round_of(begin_ms + n, begin_ms + 10 * n, graph, 10, batch_tokens_emitted=tokens)
        for n, graph in enumerate(graphs)
    ]


def test_of_a_cell_that_reports_no_tokens_their_rate_is_unknown(clickhouse: Client) -> None:
    insert(clickhouse, stuck_cell(4))
    insert(clickhouse, stuck_cell(None), SILENT)
    for name in ("cells", "live_cells", "stuck_plain", "live_stuck"):
        told = {row["service_instance_id"]: row for row in ask(clickhouse, name, **ANY_LENGTH)}
        rates = [told[one]["tokens_per_s"] for one in ("engine-1", "silent")]
        assert rates == [pytest.approx(400), None], name
        if "batch_tokens_emitted" in told["silent"]:
            assert [told[one]["batch_tokens_emitted"] for one in ("engine-1", "silent")] == [40, None], name
    assert stuck_line(told["engine-1"]).endswith("50% of its decoding so far is plain, 400 tokens/s")
    assert stuck_line(told["silent"]).endswith("50% of its decoding so far is plain, unknown tokens/s")
    (row,) = ask(clickhouse, "package_comparison")
    of_both = ("cells", "tokens_per_s_mean", "tokens_per_s_median")
    assert [row[name] for name in of_both] == [2, pytest.approx(400), pytest.approx(400)]
    (row,) = ask(clickhouse, "tokens_by_concurrency")
    assert [row[name] for name in (*of_both, "tokens_per_s_min")] == [1, *[pytest.approx(400)] * 3]
    (row,) = ask(clickhouse, "package_comparison", service_instance_id="silent")
    assert [row[name] for name in of_both] == [1, None, None]


@pytest.mark.parametrize("tokens", [0, None], ids=["nought", "nothing"])
@pytest.mark.parametrize("kind", [GraphKind.PREFILL, GraphKind.MIXED])
def test_without_a_round_of_decoding_it_is_the_same(clickhouse: Client, tokens: int | None, kind: GraphKind) -> None:
    insert(clickhouse, [round_of(0, 0, "prefill-2048", 50, graph_kind=kind, batch_tokens_emitted=tokens)])
    for name in ("cells", "live_cells", "live_seconds"):
        (row,) = ask(clickhouse, name, **{"from": START})
        rate = row["tokens_per_wall_s" if name == "live_seconds" else "tokens_per_s"]
        assert (row["batch_tokens_emitted"], rate) == (tokens, tokens), name


@pytest.mark.parametrize(("tokens", "rate"), [(0, 0), (None, None)], ids=["nought", "nothing"])
def test_a_cell_that_decodes_and_says_0_emitted_none(
    clickhouse: Client, tokens: int | None, rate: float | None
) -> None:
    insert(clickhouse, stuck_cell(tokens))
    for name in ("cells", "live_cells", "stuck_plain", "live_stuck", "fleet_stretches"):
        (row,) = ask(clickhouse, name, **{"from": START}, **ANY_LENGTH)
        assert row["tokens_per_s"] == rate, name
    (row,) = ask(clickhouse, "live_seconds", **{"from": START})
    assert (row["batch_tokens_emitted"], row["tokens_per_wall_s"]) == (rate, rate)
    assert (
        ask(
            clickhouse, "rollup_differences", **{"from": START - timedelta(minutes=1), "to": START + timedelta(hours=1)}
        )
        == []
    )


def test_one_execution_that_reports_tokens_makes_them_known(clickhouse: Client) -> None:
    insert(clickhouse, [*stuck_cell(None)[:9], *stuck_cell(7)[9:]])
    for name in ("cells", "live_cells"):
        assert [row["batch_tokens_emitted"] for row in ask(clickhouse, name, **ANY_LENGTH)] == [7], name


def test_an_alert_of_a_cell_that_reports_no_tokens_tells_no_other_cells_rate(clickhouse: Client) -> None:
    rounds = [*stuck_cell(4), *stuck_cell(None, 30_000)]
    rows = [[*row_of(one, ENGINE), START + timedelta(seconds=40)] for one in rounds]
    clickhouse.insert("new_executions", rows, column_names=[*EXECUTION_COLUMNS, "received_at"])
    (row,) = ask(clickhouse, "stuck_engines", at=START + timedelta(seconds=100), **ANY_LENGTH)
    assert (row["cells_judged"], row["cell"]) == (2, str(int(START.timestamp()) + 30))
    assert row["tokens_per_s"] is None

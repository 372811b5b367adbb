"""One plain fraction and one verdict of stuck: the post-mortem's are the query's, and what the executions add up to."""

import random

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind, Purpose
from queries.findings.stored import find_in_cell
from queries.postmortem.story import percent
from queries.postmortem.told import told
from queries.runner import run
from tests.fixtures.query_rows import insert, round_of

SEEDS = range(24)
GRAPHS = (("decode", 8.0), ("P64", 13.0), ("P128", 19.0), ("prefill", 40.0))


def cell_of(seed: int) -> list[GraphExecution]:
    """Rounds of every kind and purpose, idle hosts, and waits that overlap as those of two streams do."""
    draw = random.Random(seed)
    at_ms, executions = seed * 60_000.0, []
    for n in range(draw.randint(30, 120)):
        graph, gpu_ms = draw.choice(GRAPHS)
        gpu_ms *= draw.uniform(0.9, 1.1)
        wait_ms = draw.choice((0.0, 0.0, 0.6, 25.0, 300.0))
        kind = {"graph_kind": GraphKind.PREFILL} if graph == "prefill" else {}
        executions.append(
            round_of(
                seed * 1000 + n,
                at_ms,
                graph,
                gpu_ms,
                wall_ms=gpu_ms + wait_ms,
                graph_purpose=draw.choice((Purpose.ORDINARY, Purpose.ORDINARY, Purpose.REFRESH)),
                graph_after_idle=draw.random() < 0.1,
                graph_gpu_start_offset_ns=draw.choice((None, 0, 500_000)),
                cell_id=f"cell-{seed}",
                **kind,
            )
        )
        at_ms += gpu_ms + draw.choice((0.0, wait_ms))
    return executions


def by_hand(executions: list[GraphExecution]) -> float:
    ordinary = [one for one in executions if one.graph_purpose == Purpose.ORDINARY]
    plain = sum(one.graph_wall_time_ns for one in ordinary if one.graph_kind == GraphKind.PLAIN_DECODE)
    return plain / (plain + sum(one.graph_wall_time_ns for one in ordinary if one.graph_kind == GraphKind.SPECULATIVE))


def test_postmortem_and_query_give_the_same_plain_fraction(clickhouse: Client, clickhouse_url: str) -> None:
    cells = {f"cell-{seed}": cell_of(seed) for seed in SEEDS}
    insert(clickhouse, (one for cell in cells.values() for one in cell))
    rows = {row["cell"]: row for row in run("cells", clickhouse_url, "rows", **{"from": "2026-10-31"})}
    assert set(rows) == set(cells)
    for name, executions in cells.items():
        right = by_hand(executions)
        assert rows[name]["plain_fraction"] == pytest.approx(right, rel=1e-12)
        assert find_in_cell(clickhouse_url, "", name).being_in_plain.plain_fraction == pytest.approx(right, rel=1e-12)
    figures = {figure.name: figure.value for figure in told(clickhouse_url, "cell-3").story.figures}
    assert figures["plain fraction"] == percent(by_hand(cells["cell-3"]), 1)


def either_side_of_the_bounds(start_ms: float, cell: str, plain: int, speculative: int) -> list[GraphExecution]:
    """Rounds of 10 ms each, the speculative ones first."""
    graphs = ["P64"] * speculative + ["decode"] * plain
    return [
        round_of(int(start_ms) + n, start_ms + 10.0 * n, graph, 10.0, cell_id=cell) for n, graph in enumerate(graphs)
    ]


def test_postmortem_and_query_give_the_same_verdict_of_stuck(clickhouse: Client, clickhouse_url: str) -> None:
    """On both sides of each bound: a share of 0.3, and 3 s of decoding."""
    rounds = {"at-share": (90, 210), "above-share": (91, 210), "short": (298, 1), "long-enough": (299, 1)}
    insert(
        clickhouse,
        (
            one
            for place, (cell, of) in enumerate(rounds.items())
            for one in either_side_of_the_bounds((1_000 + place) * 60_000.0, cell, *of)
        ),
    )
    asked = run("cells", clickhouse_url, "rows", **{"from": "2026-10-31"})
    by_query = {row["cell"]: row["stuck"] for row in asked if row["cell"] in rounds}
    by_postmortem = {cell: find_in_cell(clickhouse_url, "", cell).being_in_plain.stuck for cell in rounds}
    assert by_query == by_postmortem
    assert {cell for cell, stuck in by_query.items() if stuck} == {"above-share", "long-enough"}

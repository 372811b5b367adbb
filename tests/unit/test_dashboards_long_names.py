"""One sender's name of 2,000 letters: every table of the pages shows its two ends, and keeps room for its columns."""

import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from dashboards.reading.alerts import Alert, Kept
from dashboards.rows import first_row
from dashboards.words import alerts, changes, comparisons, health, replays, stories, tables
from dashboards.words.cells import clocks_sentence, fleet_sentence, repeats_sentence
from queries.alerts.book import Entry
from queries.alerts.delivery.silences import new_silence
from queries.alerts.states import Standing, State
from queries.changes.found import changes_in
from queries.changes.history import LABELS, Metric, series_of
from queries.compare.comparison import compared
from queries.replay.replaying import Form, replay_of
from tests.fixtures.arm_tables import cell_at
from tests.fixtures.dashboard_rows import cells, stuck_rows
from tests.fixtures.query_rows import believing, round_of
from tests.fixtures.replayed_cells import cell_of

LONG = f"gpu|{'h' * 2000}|17"
AT = pd.Timestamp("2026-11-01", tz="UTC")
TAG = re.compile(r"<[^>]*>|\]\([^)]*\)")
WORD_MAX = 50
"""Letters of a line that nothing breaks."""


def check(table: str, columns: int, rows: int = 1) -> None:
    """Nothing that is seen is long, no name ends a column, and the whole name is told on hover."""
    head, _, *lines = TAG.sub("", table).splitlines()
    assert len(lines) == rows
    for line in (head, *lines):
        assert len(re.split(r"(?<!\\)\|", line)) == columns + 2, line[:300]
        assert max(map(len, line.split())) <= WORD_MAX
    assert f'title="gpu&#124;{"h" * 2000}&#124;17"' in table


def test_of_health() -> None:
    engine = {"host_name": LONG, "service_instance_id": LONG, "engine_package": LONG}
    silent = pd.DataFrame([engine | {"silent_s": 90.0, "silent_since": AT, "executions": 12}])
    check(health.silent_table(silent, UTC), 6)
    clocks = pd.DataFrame([engine | {"clock": "ahead", "off_s": -61.5, "off_since": AT}])
    check(health.clocks_table(clocks, UTC), 4)
    gaps = pd.DataFrame([engine | {"gap_started_at": AT, "executions_missing": 4, "gap_s": 0.1}])
    check(health.losses_table(gaps, UTC), 5)


@pytest.mark.parametrize("host", [LONG, ""])
def test_of_the_fleet(host: str) -> None:
    names = {"host_name": host, "service_instance_id": LONG, "cell": LONG, "cell_arm": LONG}
    check(tables.stuck_table(stuck_rows(**names, engine_recipe=LONG, best_speculative_graph=LONG), UTC), 10)
    stretches = cells(names).assign(cells=3, cells_stuck=1, plain_stuck_s=12.0, engine_package=LONG)
    check(tables.stretches_table(stretches, UTC), 7)
    late = cells(names).assign(started_at=AT + timedelta(days=10), ended_at=AT + timedelta(days=11))
    assert len(clocks_sentence(late)) < 200
    worst = fleet_sentence(cells({**names, "engine_package": LONG, "stuck": True}), "today")
    assert len(TAG.sub("", worst)) < 300
    assert "h" * 2000 in worst, "the whole name is told on hover"
    assert len(repeats_sentence(late[["service_instance_id"]], late)) < 400


def test_of_graphs() -> None:
    names = {"graph_name": LONG, "host_name": LONG, "engine_package": LONG}
    figures = ["gpu_time_median_ns", "gpu_time_p10_ns", "gpu_time_p90_ns", "gpu_time_p99_ns", "wall_time_median_ns", "handoff_median_ns", "estimate_mean_ns", "estimate_to_gpu_time"]  # fmt: skip
    check(changes.costs_table(pd.DataFrame([names | dict.fromkeys(figures, 1e6) | {"executions": 9}])), 11)
    means = {"gpu_time_mean_before_ns": 1e6, "gpu_time_mean_ns": 2e6, "drift_percent": 100.0, "drift_in_spreads": 9.0}
    check(changes.drift_table(pd.DataFrame([names | means])), 6)
    values = np.random.default_rng(1).normal(28e6, 0.2e6, 120) * np.where(np.arange(120) < 50, 1, 1.05)
    rows = [
        dict.fromkeys(LABELS.values(), "")
        | {"step_started_at": AT + timedelta(seconds=30 * n), "gpu_time_median_ns": value, "host_name": LONG}
        | {"graph_name": LONG, "engine_package": f"{n // 50 > 0}{LONG}"}
        for n, value in enumerate(values)
    ]
    series = series_of(rows, Metric.GPU_TIME, ("host", "graph"))
    found = changes_in(series, Metric.GPU_TIME, 1.0)
    check(changes.changes_table(found, UTC), 7, len(found))


def test_of_two_arms() -> None:
    arms = ("before", LONG)
    pairs = [cell_at(arms[n % 2], n, 2400.0 + n % 3, host=LONG, stuck=False) for n in range(16)]
    comparison = compared(pairs, arms, ("host",))
    check(comparisons.comparison_table(comparison), 7)
    assert len(comparisons.comparison_sentence(comparison)) < 300


def test_of_what_another_model_would_have_chosen() -> None:
    tie = believing({LONG: (29, 72), "decode": (13.5, 32)})
    rounds = [round_of(n, 40 * n, "decode", 13, wall_ms=13, **tie) for n in range(5)]
    replay = replay_of(cell_of((*rounds, round_of(5, 300, LONG, 29, **tie))), "startup_median", form=Form.EXACT)
    assert replay.exact is not None
    table = replays.swap_table(replay.exact)
    check(table, 4, len(table.splitlines()) - 2)


def test_of_an_execution() -> None:
    names = [column.name for column in stories.find("record").columns]
    record = dict.fromkeys(names, "") | {
        "scheduler_candidate_graphs": ["P128", LONG],
        "engine_attributes": {LONG: LONG},
    }
    check(stories.execution_table(first_row(pd.DataFrame([record | {"host_name": LONG}]))), 3, 3)


def test_of_alerts() -> None:
    said = {"summary": "s", "finding": "-".join(["h" * 2000] * 2)}
    entry = Entry(LONG, (("host_name", LONG), ("severity", "page")), Standing(State.FIRING), annotations=said)
    check(alerts.alerts_table([Alert(entry, ())], UTC), 6)
    silence = new_silence([f"host_name={'h' * 2000}"], "2h", "h" * 2000, LONG, datetime.now(UTC))
    check(alerts.silences_table([Kept(silence, "tachograph")], UTC), 5)
    change = {"changed_at": AT, "alertname": LONG, "state": "firing", "state_before": "pending", "host_name": LONG}
    history = pd.DataFrame([change | {"cell": LONG, "service_instance_id": "i", "summary": "s"}])
    check(alerts.history_table(history, UTC), 6)

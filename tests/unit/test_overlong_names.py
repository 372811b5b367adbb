"""One sender's name of 5,000 characters: what is printed shows how it begins, and the rest stays as it is."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from rich.console import Console

from queries.alerts.book import Entry
from queries.alerts.delivery.silences import new_silence
from queries.alerts.states import Standing, State
from queries.changes.found import changes_in
from queries.changes.history import LABELS, Metric, series_of
from queries.changes.shown import rendered as rendered_changes
from queries.commands.alerts.listing import alerts_table
from queries.commands.silences import _print_table
from queries.compare.comparison import compared
from queries.compare.terminal import rendered
from queries.replay.replaying import Form, replay_of
from queries.replay.screen import show
from queries.top.fleet import engines_of
from queries.top.frame import Size, View, frame
from queries.top.seen import Seen
from tests.fixtures.arm_tables import cell_at
from tests.fixtures.query_rows import believing, round_of
from tests.fixtures.replayed_cells import cell_of

LONG = "h" * 5000
NOW = datetime(2026, 11, 1, tzinfo=UTC)
LINES_MAX = 400
"""Of a table at 80 columns; whole, the name alone folds into more."""


@pytest.fixture
def console() -> Console:
    return Console(width=80, file=io.StringIO(), record=True)


def check(shown: str, names: int = 1) -> None:
    assert shown.count("…") >= names
    assert shown.count("h") < 256 * shown.count("…") + 300
    assert len(shown.splitlines()) < LINES_MAX


def test_of_two_arms(console: Console) -> None:
    arms = ("before", LONG)
    cells = [cell_at(arms[n % 2], n, 2400.0 + n % 3, host=LONG, stuck=False) for n in range(16)]
    lost = cells[0]._replace(executions_lost=500, cell=LONG)
    console.print(rendered(compared([lost, *cells[1:]], arms, ("host",))))
    check(console.export_text(), 5)


def test_of_what_changed(console: Console) -> None:
    values = np.random.default_rng(1).normal(28e6, 0.2e6, 120) * np.where(np.arange(120) < 50, 1, 1.05)
    rows = [
        dict.fromkeys(LABELS.values(), "")
        | {"step_started_at": NOW + timedelta(seconds=30 * n), "gpu_time_median_ns": value, "host_name": LONG}
        | {"engine_package": f"{n // 50 > 0}{LONG}"}
        for n, value in enumerate(values)
    ]
    found = changes_in(series_of(rows, Metric.GPU_TIME, ("host",)), Metric.GPU_TIME, 1.0)
    assert found
    console.print(rendered_changes(found, Metric.GPU_TIME, ("host",)))
    check(console.export_text(), 3)


@pytest.mark.parametrize("end", ["", "[/dim]"], ids=["long", "with what looks like a style"])
def test_of_what_another_model_would_have_done(console: Console, end: str) -> None:
    name = f"P{end}{LONG}"
    tie = believing({name: (29, 72), "decode": (13.5, 32)})
    rounds = [round_of(n, 40 * n, "decode", 13, wall_ms=13, **tie) for n in range(5)]
    cell = cell_of((*rounds, round_of(5, 300, name, 29, **tie)))
    show(console, replay_of(cell, "startup_median", form=Form.EXACT)._replace(cell=name, service_instance_id=LONG))
    check(console.export_text(), 4)


def test_of_silences(capsys: pytest.CaptureFixture[str]) -> None:
    silence = new_silence([f"host_name={LONG}"], "2h", f"{LONG} is known", LONG, NOW)
    _print_table([("tachograph", silence)], NOW)
    shown = capsys.readouterr().out
    check(shown, 3)
    assert max(map(len, shown.splitlines())) < 1000


def test_of_alerts(console: Console) -> None:
    said = {"summary": f"{LONG} sits in plain decode"}
    entry = Entry("StuckInPlain", (("host_name", LONG),), Standing(State.FIRING), annotations=said)
    console.print(alerts_table([entry]))
    shown = console.export_text()
    check(shown)
    assert "sits in plain" in shown


@pytest.mark.parametrize("width", [80, 10_000])
def test_of_a_fleet(width: int) -> None:
    shown = lines_of_fleet([LONG, "node-2"], width)
    check("\n".join(shown), 2)
    assert max(map(len, shown)) < 1000


def lines_of_fleet(hosts: Sequence[str], width: int) -> list[str]:
    rows = [
        {
            "service_instance_id": host, "cell": LONG, "host_name": host, "engine_package": LONG, "engine_recipe": "c32",
            "started_at": NOW, "ended_at": NOW + timedelta(seconds=30), "last_received_at": NOW + timedelta(seconds=30),
            "has_speculative": True, "plain_fraction": 0.05, "stuck": False, "inflated": False, "turned_s": 0.0,
            "tokens_per_s": 1234.5,
        }
        for host in hosts
    ]  # fmt: skip
    return frame(Seen(tuple(engines_of(rows)), at=NOW), View(), Size(width, None), NOW).plain.split("\n")

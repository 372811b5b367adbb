"""Sampling's settings reach the collector, and what it did is told where people look."""

import re
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import pytest
import typer
from clickhouse_connect.driver.client import Client
from prometheus_client import CollectorRegistry

from collector.commands.collect import sampling_of
from collector.sampling.rules import SamplingRules
from collector.sampling.sampler import EVERY_S, Sampler
from collector.sampling.sampling import Sampled
from collector.store.client import StoreClient
from collector.store.settings import shown_default
from collector.telemetry.own_metrics import SamplingMetrics
from dashboards.reading.collector import Collected
from dashboards.words.health import figures
from tachograph import Settings, settings_from
from tests.conftest import ROOT

UNEXAMINED = files("collector.sampling").joinpath("unexamined_cells.sql").read_text("utf-8")


def settings(monkeypatch: pytest.MonkeyPatch, **given: object) -> Settings:
    for name, value in given.items():
        monkeypatch.setenv(f"TACHOGRAPH_{name.upper()}", str(value))
    return Settings(_env_file=None)  # type: ignore[call-arg]


def test_it_is_off_until_somebody_turns_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sampling_of(settings(monkeypatch)) is None
    assert sampling_of(settings(monkeypatch, sampling=True)) == SamplingRules()


def test_each_setting_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    given = settings(
        monkeypatch,
        sampling=True,
        sampling_share=0.25,
        sampling_after_s=7200,
        sampling_context_s=900,
        sampling_keeps_marked=False,
    )
    assert sampling_of(given) == SamplingRules(0.25, 7200, 900, keeps_marked=False)


@pytest.mark.parametrize(("name", "value"), [("after_s", 599), ("context_s", 599), ("share", 1.1), ("share", -0.1)])
def test_what_could_change_a_verdict_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"sampling_{name}"):
        settings(monkeypatch, **{f"sampling_{name}": value})


@pytest.mark.parametrize("name", ["after_s", "context_s"])
def test_no_look_goes_back_further_than_two_weeks_and_two_days(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    week_s = 7 * 86_400
    assert getattr(settings(monkeypatch, **{f"sampling_{name}": week_s}), f"sampling_{name}") == week_s
    with pytest.raises(ValueError, match=f"sampling_{name}"):
        settings(monkeypatch, **{f"sampling_{name}": week_s + 1})


def test_the_page_says_how_long_a_healthy_cell_stays() -> None:
    """The parts of the sum are those that the code goes by."""
    rules = SamplingRules()
    page = (ROOT / "docs" / "sampling.md").read_text()
    parts = [int(one.replace(",", "")) for one in re.findall(r"^\| .* \| ([\d,]+) s \|$", page, re.MULTILINE)]
    judged_finally = re.search(r"judged_at >= addSeconds\(cell_received_at, (\d+)\)", UNEXAMINED)
    assert judged_finally
    assert parts == [rules.context_s + 30, int(judged_finally[1]), rules.settled_s, int(EVERY_S)]
    assert f"after at most | {sum(parts):,} s, some {sum(parts) / 60:.0f} min |" in page
    assert f"The earliest is {int(judged_finally[1]) + rules.settled_s:,} s" in page


def test_metrics_tell_what_was_dropped() -> None:
    registry = CollectorRegistry()
    registry.register(SamplingMetrics(lambda: Sampled(7, 5, 4321)))
    told = {name: registry.get_sample_value(f"tachograph_sampling_{name}") for name in Sampled._fields}
    assert told == {"examined_cells": 7, "dropped_cells": 5, "dropped_executions": 4321}


def test_the_health_page_tells_it_where_sampling_is_on() -> None:
    state: dict[str, Any] = {
        "ledger": {},
        "spool": {
            **dict.fromkeys(("pending_requests", "pending_bytes", "set_aside_requests", "bytes_max"), 0),
            "oldest_unix_ms": None,
        },
        "disk": {"free_bytes": 1, "free_bytes_min": 0},
        "sampling": None,
        "now_unix_ms": 0,
    }
    at = datetime.now(UTC)
    whole = [figure.name for figure in figures(Collected(state, at=at))]
    sampled = figures(Collected(state | {"sampling": Sampled(7, 5, 4321)._asdict()}, at=at))
    assert [figure.name for figure in sampled] == [*whole, "Sampled away, executions"]
    assert sampled[-1].value == "4,321"


def test_a_sampler_looks_by_itself_and_ends(clickhouse: Client) -> None:
    sampler = Sampler(StoreClient(lambda: clickhouse), SamplingRules(), every_s=60)
    sampler.start()
    sampler.see_to_it()
    assert sampler.sampled == Sampled()
    sampler.stop()


def test_bytes_may_be_written_with_their_unit_and_the_help_shows_defaults_as_they_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = settings(monkeypatch, store_bytes_max="10GB", spool_bytes_max="1.5GiB", disk_free_bytes_min=7)
    assert (given.store_bytes_max, given.spool_bytes_max, given.disk_free_bytes_min) == (10**10, 3 * 2**29, 7)
    with pytest.raises(ValueError, match="store_bytes_max"):
        settings(monkeypatch, store_bytes_max=-1)
    assert [shown_default(value) for value in (0, False, "", None, 0.01)] == ["0", "false", "none", "none", "0.01"]


@pytest.mark.parametrize("given", ["lots", "5QB", "-5"])
def test_a_size_that_is_none_is_told_how_sizes_look(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        settings_from({"store_bytes_max": given})
    told = capsys.readouterr().err
    assert told == f"tachograph: TACHOGRAPH_STORE_BYTES_MAX is '{given}': sizes look like 512MiB, 10GB or 1073741824\n"

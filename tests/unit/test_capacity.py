"""The capacity calculator: its page, its arithmetic, and that it knows what the code is bounded by."""

import json
import re
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from collector.capacity.figures import figures
from collector.capacity.plan import (
    EMBEDDED_CORES_MAX,
    EMBEDDED_DISK_MAX,
    JUDGING_CORES_MAX,
    ROLLUP_DAYS,
    SECOND_DAYS,
    Fleet,
    Plan,
    plan_of,
)
from collector.capacity.shown import page, size, told
from collector.judging.judging import SHARE_MAX
from collector.store.migrations import schema_files
from collector.store.table_rules import rules_wanted
from tachograph import application
from tests.conftest import ROOT

KNOWN = figures()


def plan(engines: int, **of: float) -> Plan:
    return plan_of(Fleet(engines, **of), KNOWN)  # type: ignore[arg-type]


def test_the_page_is_what_the_calculator_says() -> None:
    assert (ROOT / "docs" / "capacity.md").read_text() == page(), (
        "python -m collector.capacity.shown > docs/capacity.md"
    )


def test_every_figure_has_its_source_and_date() -> None:
    for name, figure in KNOWN._asdict().items():
        assert figure.value > 0
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", figure.date), name
        assert figure.source
        assert figure.meaning


def test_files_named_as_sources_are_there() -> None:
    for figure in KNOWN:
        for path in re.findall(r"(?:docs|tests)/[\w./-]+\.(?:md|py)", figure.source):
            assert (ROOT / path).is_file(), path


def test_the_arithmetic_by_hand() -> None:
    ten = plan(10, executions_per_s=100.0, days=10)
    assert ten.executions_per_s == 1000
    assert ten.raw_bytes_per_day == pytest.approx(1000 * 86_400 * KNOWN.bytes_per_execution.value)
    by_cell, by_second = KNOWN.rollup_bytes_per_cell.value, KNOWN.second_bytes_per_cell.value
    rollups = 10 / 30 * 86_400 * (180 * by_cell + 30 * by_second)
    assert ten.disk_bytes == pytest.approx(10 * ten.raw_bytes_per_day + rollups)
    assert ten.ingest_cores == pytest.approx(1000 * KNOWN.collector_cpu_us_per_execution.value / 1e6)
    assert ten.network_bytes_per_s == pytest.approx(1000 * KNOWN.otlp_gzip_bytes_per_execution.value)


def test_what_runs_grows_with_the_fleet_and_nothing_shrinks() -> None:
    plans = [plan(engines) for engines in (1, 10, 100, 1000, 10_000, 100_000)]
    order = ("embedded", "server", "cluster")
    places = [order.index(one.layout) for one in plans]
    assert places == sorted(places)
    assert {places[0], places[-1]} == {0, 2}
    for smaller, larger in pairwise(plans):
        assert smaller.cores <= larger.cores
        assert smaller.disk_bytes < larger.disk_bytes
        assert smaller.shards <= larger.shards


def test_an_embedded_plan_keeps_to_its_bounds() -> None:
    for engines in range(1, 400, 7):
        one = plan(engines)
        if one.layout == "embedded":
            assert one.cores <= EMBEDDED_CORES_MAX + 1
            assert one.disk_bytes <= EMBEDDED_DISK_MAX


def test_sampling_takes_off_disk_and_nothing_else() -> None:
    whole, sampled = plan(5000), plan(5000, sampling_kept=0.1)
    # Nine tenths of every day but the last one and a half, which stay whole until they are judged and over.
    saved = whole.disk_bytes - sampled.disk_bytes
    assert saved == pytest.approx(0.9 * (30 - 1.5) * whole.raw_bytes_per_day)
    assert sampled.ingest_cores == whole.ingest_cores


def test_it_knows_what_judging_is_bounded_by() -> None:
    assert JUDGING_CORES_MAX == SHARE_MAX
    assert plan(100_000).breaks_first.startswith("judging")


@pytest.mark.parametrize(
    ("engines", "viewers", "said"),
    [
        pytest.param(
            10, 30, "cores, most of them for questions: ingest and questions share one process", id="embedded"
        ),
        pytest.param(200, 200, "cores, most of them for questions: a cluster is next", id="server"),
        pytest.param(200, 100_000, "cores for questions: pages get slower, nothing is lost", id="cluster"),
        pytest.param(200, 0, "disk: fewer days, or sampling", id="nobody looks"),
    ],
)
def test_what_breaks_first_is_what_most_is_for(engines: int, viewers: int, said: str) -> None:
    assert plan(engines, viewers=viewers, days=1 if viewers else 300).breaks_first == said


def test_ingest_breaks_first_where_it_takes_most() -> None:
    fast = plan(500, executions_per_s=5000.0, days=1, viewers=1)
    assert fast.shards > 1
    assert fast.breaks_first == "cores for ingest: spools fill, then senders are held back"


@pytest.mark.parametrize("engines", [1, 10, 1000, 100_000, 1_000_000])
def test_an_engine_that_outruns_its_recorder_breaks_first(engines: int) -> None:
    core_full_at = 1e6 / KNOWN.engine_cpu_us_per_execution.value
    assert plan(engines, executions_per_s=1.01 * core_full_at).breaks_first.startswith("recorders: ")
    assert not plan(engines, executions_per_s=0.99 * core_full_at).breaks_first.startswith("recorders: ")


def test_collectors_are_as_many_as_their_own_work_wants_too() -> None:
    """11 us of an execution are the collector's own: half a core's worth are 45,454 a second."""
    assert plan(10, executions_per_s=40_000.0).collectors == 9
    assert plan(12_500).collectors == 25
    assert plan(1_000_000, executions_per_s=0.001).collectors == 2000


@pytest.mark.parametrize(
    ("engines", "layout", "collectors"), [(500, "embedded", 1), (501, "server", 2), (1000, "server", 2)]
)
def test_collectors_are_as_many_as_connections_want_whatever_is_kept(
    engines: int, layout: str, collectors: int
) -> None:
    """An embedded store lies in one collector, which is planned for 500 connections."""
    kept = [plan(engines, days=days, executions_per_s=1.0) for days in (1, 14, 30)]
    assert {(one.layout, one.collectors) for one in kept} == {(layout, collectors)}
    assert plan(1000, gpus_per_engine=8, days=14).collectors == plan(1000, gpus_per_engine=8).collectors == 2


def test_an_engine_has_no_more_cells_than_executions() -> None:
    rare, rarer = (plan(1000, executions_per_s=rate, viewers=0) for rate in (0.001, 0.0001))
    assert rare.disk_bytes == pytest.approx(10 * rarer.disk_bytes)
    assert rare.judging_cores == pytest.approx(10 * rarer.judging_cores)


def test_a_slow_fleet_is_told_without_noughts_and_a_great_one_with_commas() -> None:
    slow, slowest = (dict(told(plan(1, executions_per_s=rate))) for rate in (0.25, 1e-9))
    assert (slow["executions"], slow["in each engine"]) == ("0.25 a second", "less than 0.01 % of a core")
    assert slowest["executions"] == "less than 0.01 a second"
    great = dict(told(plan(1_000_000, executions_per_s=1000.0)))
    assert great["runs"].startswith("22,000 x `tachograph collect`, 6,9")
    assert not re.search(r"\d{5}", " ".join(great.values()))


def test_it_keeps_rollups_for_as_long_as_the_schema_does() -> None:
    days = {table: rules.ttl_days for table, rules in rules_wanted(schema_files()).items()}
    assert (days["cell_graphs"], days["cell_windows"], days["engine_seconds"]) == (
        ROLLUP_DAYS,
        ROLLUP_DAYS,
        SECOND_DAYS,
    )


def test_cores_are_the_sum_that_is_shown() -> None:
    for engines in (1, 10, 300, 1000, 100_000):
        one = plan(engines)
        words = dict(told(one))
        double, *parts = (float(part.replace(",", "")) for part in re.findall(r"\d[\d,.]*\d|\d", words["of them"]))
        ingest, judging, questions = parts
        assert double * (ingest + judging) + questions == pytest.approx(one.cores, abs=1.2)
        assert "x (ingest" in words["of them"]
    assert dict(told(plan(1000)))["of them"] == (
        "2 x (ingest 1.33 + judging 0.04), for bursts, + questions 1.00, rounded up"
    )
    assert plan(1000).cores == 4


def test_what_one_host_wants_and_what_all_of_them_want_are_told_apart() -> None:
    """Known by hand: 12,500 engines make 26 TB a copy, so 3 shards of at most 10 TB, each on two hosts."""
    whole, sampled = plan(12_500), plan(12_500, sampling_kept=0.2)
    assert (whole.shards, whole.store_hosts, whole.cores, whole.cores_per_store_host) == (3, 6, 36, 12)
    assert (sampled.shards, sampled.store_hosts, sampled.cores, sampled.cores_per_store_host) == (2, 4, 36, 18)
    words = dict(told(whole))
    assert words["runs"] == "25 x `tachograph collect`, 6 ClickHouse hosts: 3 shards x 2 replicas"
    assert words["one store host"] == "12 cores, 8.6 TB of disk, 128 GB of memory"
    assert words["all store hosts"] == "72 cores, 51 TB of disk, 768 GB of memory, for all 6"
    assert words["disk of a copy"] == "26 TB, on 3 hosts"
    assert dict(told(plan(10)))["all store hosts"] == "the same: there is one"


@pytest.mark.parametrize("engines", [1, 10, 450, 1000, 12_500, 100_000])
def test_hosts_together_hold_every_copy(engines: int) -> None:
    one = plan(engines)
    assert one.store_hosts == one.shards * one.replicas
    assert one.store_hosts * one.disk_bytes_per_store_host == pytest.approx(one.replicas * one.disk_bytes)
    assert one.store_hosts * one.cores_per_store_host >= one.replicas * one.cores
    copy = one.shards * one.memory_bytes_per_store_host + one.collectors * one.memory_bytes_per_collector
    assert copy == pytest.approx(one.memory_bytes)


def test_one_core_is_one() -> None:
    assert dict(told(plan(1, viewers=0)))["one store host"].startswith("1 core, ")


def test_the_agents_queue_is_reckoned_by_the_same_figure() -> None:
    """docs/deploy/agent.yaml says how long an outage may last, by the rate of the calculator."""
    agent = (ROOT / "docs" / "deploy" / "agent.yaml").read_text()
    said = re.search(
        r"At (\d+) a second of one engine .*?, (\d+) engines a host:\W+some (\d+) minutes", agent, re.DOTALL
    )
    queue = re.search(r"queue_size: (\d+)", agent)
    assert said
    assert queue
    rate, engines, minutes = map(int, said.groups())
    assert rate == KNOWN.executions_per_s_of_an_engine.value
    assert minutes == pytest.approx(int(queue[1]) / (rate * engines) / 60, rel=0.05)


@pytest.mark.parametrize(
    "options",
    [
        ("--rounds", "inf"),
        ("--rounds", "nan"),
        ("--rounds", "-1"),
        ("--rounds", "1e300"),
        ("--sampling-kept", "nan"),
        ("--sampling-kept", "1.5"),
        ("--engines", "1000000000000"),
        ("--gpus-per-engine", "1000000000000"),
        ("--viewers", "1000000000000"),
    ],
    ids="=".join,
)
def test_impossible_fleets_are_refused(options: tuple[str, str]) -> None:
    refused = CliRunner().invoke(application(), ["capacity", "--engines", "10", *options])
    assert refused.exit_code == 2
    assert options[0] in refused.stderr
    assert not refused.stdout
    if options[1] in ("nan", "inf"):
        assert f"{options[1]} is no number" in refused.stderr


def test_the_command_says_the_same_in_words_and_as_json() -> None:
    runner = CliRunner()
    said = json.loads(runner.invoke(application(), ["capacity", "--engines", "1000", "--json"]).stdout)
    assert said == plan(1000)._asdict()
    words = runner.invoke(application(), ["capacity", "--engines", "1000"]).stdout
    assert size(said["disk_bytes"]) in words
    assert said["breaks_first"] in words

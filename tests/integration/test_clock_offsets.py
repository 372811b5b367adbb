"""Hosts whose clocks are off are found, and late data is not taken for one."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from clickhouse_connect.driver.client import Client

from collector.doctor.store_checks import check_host_clocks
from collector.store.client import StoreClient
from collector.telemetry.clock_offsets import ClockWatch, clock_offsets
from collector.telemetry.metrics import CollectorMetrics
from collector.telemetry.own_metrics import ClockMetrics
from queries.runner import run
from tests.fixtures.arrivals import arrive


@pytest.mark.parametrize("delay_s", [-299.0, -40.0, 40.0, 181.0], ids=lambda delay_s: f"{delay_s:.0f}s")
def test_a_steady_offset_is_found_with_its_beginning(clickhouse: Client, delay_s: float) -> None:
    arrive(clickhouse, "healthy", first_s_ago=600, count=20)
    arrive(clickhouse, "off", first_s_ago=1200, count=20)
    arrive(clickhouse, "off", first_s_ago=600, count=20, delay_s=delay_s)
    (found,) = clock_offsets(clickhouse)
    assert (found.host, found.offset_s) == ("off", -delay_s)
    since = found.since.replace(tzinfo=UTC)
    assert abs(since - (datetime.now(UTC) - timedelta(seconds=600))) < timedelta(seconds=45)


@pytest.mark.parametrize(
    "when",
    [
        {},
        {"delay_s": 20.0},
        # What piled up in an outage comes in faster than it was made.
        {"first_s_ago": 200, "every_s": 10, "count": 20, "delay_s": 3600, "delay_growth_s": -150},
        # Imported: at once, and of another year.
        {"first_s_ago": 10, "every_s": 0.01, "delay_s": 7200},
        {"first_s_ago": 300, "delay_s": 4 * 365 * 86400.0},
        # Mended an hour ago.
        {"first_s_ago": 7200, "delay_s": -300},
    ],
    ids=["healthy", "slow sender", "backlog", "import", "import of another year", "long ago"],
)
def test_what_is_only_late_is_not_an_offset(clickhouse: Client, when: dict[str, float]) -> None:
    arrive(clickhouse, "host", **when)
    assert clock_offsets(clickhouse) == []


def test_a_clock_that_was_mended_is_told_no_longer(clickhouse: Client) -> None:
    arrive(clickhouse, "host", first_s_ago=600, count=10, delay_s=-300)
    assert [found.host for found in clock_offsets(clickhouse)] == ["host"]
    arrive(clickhouse, "host", first_s_ago=200, count=6)
    assert clock_offsets(clickhouse) == []


@pytest.mark.parametrize(
    ("ahead_s", "told_s"),
    [((8_804.0, 31_534_000.0), 31_534_000.0), ((400.0, -900.0), -900.0)],
    ids=["both ahead", "one behind"],
)
def test_of_instances_that_disagree_the_furthest_is_told(
    clickhouse: Client, ahead_s: tuple[float, ...], told_s: float
) -> None:
    """And no mean of them, which no engine has."""
    for number, offset_s in enumerate(ahead_s):
        arrive(clickhouse, "host", engine=f"engine {number}", first_s_ago=200 + 200 * number, delay_s=-offset_s)
    (found,) = clock_offsets(clickhouse)
    assert (found.host, found.offset_s) == ("host", told_s)
    since = found.since.replace(tzinfo=UTC)
    assert abs(since - (datetime.now(UTC) - timedelta(seconds=400))) < timedelta(seconds=45)


def test_an_instance_that_is_in_step_hides_no_other_of_its_host_that_is_ahead(clickhouse: Client) -> None:
    arrive(clickhouse, "host", engine="in step", first_s_ago=600, count=20)
    arrive(clickhouse, "host", engine="off", first_s_ago=400, count=13, delay_s=-299)
    (found,) = clock_offsets(clickhouse)
    assert (found.host, found.offset_s) == ("host", 299)
    assert abs(found.since.replace(tzinfo=UTC) - (datetime.now(UTC) - timedelta(seconds=400))) < timedelta(seconds=45)


@pytest.mark.parametrize(("in_step_until_s_ago", "told"), [(0, []), (200, ["host"])], ids=["beside it", "before"])
def test_what_is_behind_beside_one_that_is_in_step_sends_late(
    clickhouse: Client, in_step_until_s_ago: float, told: list[str]
) -> None:
    count = int((600 - in_step_until_s_ago) / 30)
    arrive(clickhouse, "host", engine="in step", first_s_ago=600, count=count)
    arrive(clickhouse, "host", engine="late", first_s_ago=600, count=20, delay_s=181)
    assert [found.host for found in clock_offsets(clickhouse)] == told


def test_an_engine_that_is_started_after_its_hosts_clock_was_mended_tells_that_it_is(clickhouse: Client) -> None:
    arrive(clickhouse, "host", engine="before", first_s_ago=600, count=10, delay_s=-300)
    arrive(clickhouse, "host", engine="after", first_s_ago=200, count=6)
    assert clock_offsets(clickhouse) == []


def test_an_engine_that_saw_its_hosts_clock_mended_tells_of_one_that_ended_before(clickhouse: Client) -> None:
    for engine, count in (("ended", 8), ("runs on", 12)):
        arrive(clickhouse, "host", engine=engine, first_s_ago=600, count=count, delay_s=-300)
    arrive(clickhouse, "host", engine="runs on", first_s_ago=200, count=6)
    assert clock_offsets(clickhouse) == []


@pytest.mark.parametrize("off_s", [-7_203.0, -40.0, 7_197.0])
def test_the_doctor_names_the_query_that_shows_them(clickhouse: Client, clickhouse_url: str, off_s: float) -> None:
    """`last_s` counts from the newest execution, by the engines' clocks: one that is hours behind lies before all of it."""
    for host, delay_s in (("in step", 1.0), ("off", -off_s)):
        arrive(clickhouse, host, first_s_ago=600, count=20, delay_s=delay_s)
    told = check_host_clocks(clickhouse)
    assert told.finding.startswith(f"off is {abs(off_s):,.0f} s {'ahead' if off_s > 0 else 'behind'} since ")
    named = re.search(r"see tachograph query (\w+) --param last_s=(\d+)$", told.advice)
    assert named
    clocks = {row["host_name"]: row for row in run(named[1], clickhouse_url, "rows", last_s=int(named[2]))}
    assert clocks["off"]["clock"] == ("ahead" if off_s > 0 else "behind or late")
    assert clocks["off"]["off_s"] == pytest.approx(-off_s, abs=1)
    assert clocks["in step"]["off_s"] == 0


def test_the_metric_names_the_host(clickhouse: Client) -> None:
    arrive(clickhouse, "ahead", delay_s=-300)
    metrics = CollectorMetrics()
    metrics.registry.register(ClockMetrics(ClockWatch(StoreClient(lambda: clickhouse)).offsets))
    assert metrics.registry.get_sample_value("tachograph_host_clock_offset_seconds", {"host": "ahead"}) == 300
    (told,) = (one for one in metrics.registry.collect() if one.name == "tachograph_host_clock_offset_seconds")
    assert "above 0 it is ahead, below 0 behind" in told.documentation

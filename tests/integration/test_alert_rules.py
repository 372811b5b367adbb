"""Every shipped rule on tiny rows: it fires, it does not just below its threshold, and it clears below the clear one."""

from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from collector.judging.judging import judge_cells
from queries.alerts.backtest import Episode, Plan, backtest, planned
from queries.alerts.loading import SHIPPED, load_rules
from queries.alerts.notifying import Alert
from queries.alerts.rule import Rule
from queries.alerts.sources import StoredSource
from queries.runner import Rows
from tests.fixtures.alert_evaluators import Evaluating, VirtualClock
from tests.fixtures.alert_rows import CELL_S, ENDED, RULES, Fleet, Watch
from tests.fixtures.query_rows import ENGINE, believing


@pytest.fixture
def fleet(clickhouse: Client, clickhouse_url: str) -> Fleet:
    return Fleet(clickhouse, clickhouse_url)


def after(cells: int) -> float:
    """Two seconds after so many cells."""
    return cells * CELL_S + 2.0


def test_stuck_in_plain(fleet: Fleet) -> None:
    watch = Watch(fleet, "StuckInPlain")
    fleet.cell(0, 0)
    fleet.cell(1, 30)
    assert watch.states(after(2)) == ["inactive"], "one stuck cell is a stumble"
    fleet.cell(2, 9)
    assert watch.states(after(3)) == ["inactive"], "the second is at 0.3, not above"
    fleet.cell(3, 10)
    assert watch.states(after(4)) == ["firing"]
    alert: Alert = watch.entry.alert("http://dashboards/")
    assert alert.labels == {
        "alertname": "StuckInPlain",
        "severity": "critical",
        "service_instance_id": "engine-1",
        "host_name": "node-1",
    }
    assert alert.annotations["summary"] == (
        "node-1 (engine-1) sits in plain decode: 100% of its decoding time in the worst of its last 3 cells, 33% in the next; "
        "what it costs is not judged yet"
    )
    assert alert.generator_url.startswith("http://dashboards/cell?engine=engine-1&cell=")
    assert alert.ends_at is None
    fleet.cell(4, 7)
    fleet.cell(5, 6)
    assert watch.states(after(5), after(6)) == ["firing", "firing"], "0.23 in two of three is not below 0.2"
    fleet.cell(6, 5)
    assert watch.states(after(7)) == ["firing"], "0.2 itself is not below"
    fleet.cell(7, 5)
    assert watch.end(after(8)) == ENDED
    over = watch.entry.alert("http://dashboards/").annotations
    assert over["summary"] == (
        "node-1 (engine-1) decodes speculatively again: 17% of its decoding time was plain in its latest cell"
    )
    assert "sits in plain decode" in over["was"]
    assert "description" not in over


def test_stuck_in_plain_says_what_it_costs(fleet: Fleet) -> None:
    fooled = believing({"P128": (34.0, 10.0), "decode": (13.0, 4.4)})
    fleet.arrive(fleet.rounds(0, ["P128"] * 30, gpu_ms=28.0, **fooled))
    for number in (1, 2):
        fleet.arrive(fleet.rounds(30 * number, ["decode"] * 29, gpu_ms=13.0, wall_ms=990.0, **fooled))
    judge_cells(fleet.client, 86_400)
    watch = Watch(fleet, "StuckInPlain")
    assert watch.states(after(3) + 1) == ["firing"]
    # 10 tokens in 28 ms, and not 4.4 in 990 ms.
    assert watch.entry.measured["tokens_lost_per_s"] == pytest.approx(10 / 0.028 - 4.4 / 0.99)
    assert watch.entry.annotations["summary"].endswith("it costs 353 tokens/s")


def test_stuck_in_plain_needs_a_speculative_graph(fleet: Fleet) -> None:
    for number in range(3):
        fleet.cell(number, 30)
    assert Watch(fleet, "StuckInPlain").states(after(3)) == ["inactive"]


@pytest.mark.parametrize("delay_s", [1.0, 91.0])
def test_a_running_cell_tells_what_an_engine_has_and_nothing_else(fleet: Fleet, delay_s: float) -> None:
    """Neither is it judged, nor does it make cells late that arrived less promptly."""
    for number in range(2):
        fleet.cell(number, 30, delay_s=delay_s)
    watch = Watch(fleet, "StuckInPlain")
    assert watch.states(after(2)) == ["inactive"], "no speculative graph is known"
    fleet.arrive(fleet.rounds(61, ["P128"]))
    assert watch.states(after(2) + 1) == ["firing"]
    assert watch.entry.measured["plain_fraction"] == 1
    assert "of its last 2 cells" in watch.entry.annotations["summary"]


def test_a_clock_that_is_off_hides_no_alert(fleet: Fleet) -> None:
    behind = ENGINE._replace(service_instance_id="behind", host_name="behind")
    ahead = ENGINE._replace(service_instance_id="ahead", host_name="ahead")
    for engine, delay_s in ((behind, 1801.0), (ahead, -1799.0)):
        for number, plain in enumerate((0, 30, 30)):
            fleet.cell(number, plain, engine, delay_s=delay_s)
    watch = Watch(fleet, "StuckInPlain")
    watch.look(after(3))
    assert {dict(identity)["host_name"] for identity in watch.entries} == {"behind", "ahead"}


def test_estimate_inflation(fleet: Fleet) -> None:
    watch = Watch(fleet, "EstimateInflation")
    right = believing({"P128": (28.0, 10.0), "decode": (13.0, 4.4)})
    fleet.arrive(fleet.rounds(0, ["P128"] * 30, gpu_ms=28.0, **right))
    # 10 / 34 ms is less than 4.4 / 13 ms, which is less than 10 / 28 ms.
    fleet.arrive(
        fleet.rounds(
            30, ["decode"] * 30, gpu_ms=13.0, wall_ms=990.0, **believing({"P128": (34.0, 10.0), "decode": (13.0, 4.4)})
        )
    )
    assert watch.states(60.5) == ["inactive"], "29 s from the first to the last"
    fleet.arrive(
        fleet.rounds(
            60, ["decode"] * 3, gpu_ms=13.0, wall_ms=990.0, **believing({"P128": (34.0, 10.0), "decode": (13.0, 4.4)})
        )
    )
    assert watch.states(62.5) == ["firing"]
    assert "P128 1.21 times" in watch.entry.annotations["summary"]
    fleet.arrive(fleet.rounds(63, ["P128"] * 100, gpu_ms=28.0, **right))
    assert watch.states(100, 135) == ["firing", "firing"]
    assert watch.end(145) == ENDED


def test_what_was_judged_is_asked_of_the_present(fleet: Fleet) -> None:
    """The exact question is asked as long as nobody has judged; then what was judged tells the same."""
    fooled = believing({"P128": (34.0, 10.0), "decode": (13.0, 4.4)})
    fleet.arrive(fleet.rounds(0, ["P128"] * 30, gpu_ms=28.0, **fooled))
    fleet.arrive(fleet.rounds(30, ["decode"] * 33, gpu_ms=13.0, wall_ms=990.0, **fooled))
    for name in ("EstimateInflation", "GraphRegression"):
        exact = fleet.source.rows(RULES.named(name), fleet.at(64), is_now=True)
        assert not any("judged" in row for row in exact), "nobody judged: the exact question was asked"
    exact = fleet.source.rows(RULES.named("EstimateInflation"), fleet.at(64), is_now=True)
    judge_cells(fleet.client, 86_400)
    (told,) = fleet.source.rows(RULES.named("EstimateInflation"), fleet.at(64), is_now=True)
    assert told.pop("judged")
    assert told == {
        name: pytest.approx(value) if isinstance(value, float) else value for name, value in exact[0].items()
    }
    (past,) = fleet.source.rows(RULES.named("EstimateInflation"), fleet.at(64), is_now=False)
    assert "judged" not in past, "of the past, what had arrived by then is judged"


def test_inflation_that_changed_no_decision_wakes_nobody(fleet: Fleet) -> None:
    charged = believing({"P128": (34.0, 10.0), "decode": (13.0, 3.0)})
    fleet.arrive(fleet.rounds(0, ["P128"] * 90, gpu_ms=28.0, **charged))
    assert Watch(fleet, "EstimateInflation").states(60, 90) == ["inactive", "inactive"]


def late_rounds(fleet: Fleet, from_s: float, seconds: int, late: int, gap_ms: float = 60.0) -> None:
    """Ten rounds a second, of which the first `late` find the device idle."""
    executions = []
    for n in range(10 * seconds):
        is_late = n % 10 < late
        gpu_ms = 100.0 - (gap_ms if is_late else 0.0)
        executions += fleet.rounds(
            from_s + n / 10, ["P128"], gpu_ms=gpu_ms, wall_ms=100.0, graph_queue_depth=0 if is_late else 1
        )
    fleet.arrive(executions)


def test_host_bound(fleet: Fleet) -> None:
    watch = Watch(fleet, "HostBound")
    late_rounds(fleet, 0, 60, 3)
    assert watch.states(60) == ["inactive"], "three of ten are not above 0.3"
    late_rounds(fleet, 60, 140, 4)
    assert watch.states(120, 150, 180, 190) == ["pending", "pending", "firing", "firing"]
    late_rounds(fleet, 200, 60, 2)
    assert watch.states(260) == ["firing"], "0.2 is not below 0.15"
    late_rounds(fleet, 260, 140, 1)
    assert watch.end(320) == ENDED


def test_one_long_stumble_is_not_host_bound(fleet: Fleet) -> None:
    late_rounds(fleet, 0, 30, 0)
    fleet.arrive(fleet.rounds(30, ["P128"], gpu_ms=28.0, wall_ms=61.0, graph_queue_depth=0))
    late_rounds(fleet, 31, 29, 0)
    assert Watch(fleet, "HostBound").states(60, 120, 180) == ["inactive"] * 3


def windows(fleet: Fleet, first: int, count: int, gpu_ms: float) -> None:
    for number in range(first, first + count):
        fleet.arrive(fleet.rounds(number * CELL_S, ["P128"] * 29, gpu_ms=gpu_ms))


def test_graph_regression(fleet: Fleet) -> None:
    watch = Watch(fleet, "GraphRegression")
    windows(fleet, 0, 20, 28.0)
    windows(fleet, 20, 11, 29.0)
    assert watch.states(after(30), after(31)) == ["inactive"] * 2, "3.6 % is not above 5"
    windows(fleet, 31, 11, 31.0)
    assert watch.states(after(42), after(44), after(46)) == ["pending", "pending", "firing"]
    assert "P128 on node-1 (engine-1) runs " in watch.entry.annotations["summary"]
    windows(fleet, 42, 24, 29.0)
    assert watch.states(after(56), after(60), after(66)) == ["firing", "firing", "resolved"]


def heard_for_three_cells(fleet: Fleet) -> None:
    for number in range(3):
        fleet.cell(number, 0)


def test_engine_silent(fleet: Fleet) -> None:
    watch = Watch(fleet, "EngineSilent")
    heard_for_three_cells(fleet)
    heard_s = 90.99
    assert watch.states(heard_s + 59, heard_s + 61, heard_s + 71, heard_s + 82) == [
        "inactive",
        "pending",
        "pending",
        "firing",
    ]
    fleet.cell(6, 0)
    assert watch.end(211) == ENDED


def test_what_is_imported_or_runs_for_a_cell_or_two_is_never_silent(fleet: Fleet) -> None:
    fleet.cell(0, 0)
    fleet.cell(1, 0)
    assert Watch(fleet, "EngineSilent").states(150, 180, 600) == ["inactive"] * 3


def test_an_engine_that_was_restarted_is_not_silent(fleet: Fleet) -> None:
    watch = Watch(fleet, "EngineSilent")
    heard_for_three_cells(fleet)
    assert watch.states(160, 181) == ["pending", "firing"]
    fleet.cell(6, 0, ENGINE._replace(service_instance_id="engine-2", gpu_ids=("7",)))
    assert watch.states(212) == ["firing"], "on another GPU"
    fleet.cell(7, 0, ENGINE._replace(service_instance_id="engine-3"))
    assert watch.end(242) == ENDED


def test_who_replaced_whom_is_told_once_the_old_one_is_silent(fleet: Fleet) -> None:
    heard_for_three_cells(fleet)
    heard_s = 90.99
    new = ENGINE._replace(service_instance_id="engine-2")
    elsewhere = ENGINE._replace(service_instance_id="engine-3", gpu_ids=("7",))
    for engine in (new, elsewhere):
        fleet.arrive(fleet.rounds(95, ["P128"] * 60, engine), engine)
    assert fleet.source.replaced(fleet.at(heard_s + 29)) == {}, "it may be a pause"
    assert fleet.source.replaced(fleet.at(heard_s + 31)) == {"engine-1": "engine-2"}


def test_an_engine_that_is_silent_is_not_replaced_by_one_that_shared_its_gpus(fleet: Fleet) -> None:
    beside = ENGINE._replace(service_instance_id="engine-2")
    fleet.arrive(fleet.rounds(60, ["P128"] * 90, beside), beside)
    heard_for_three_cells(fleet)
    assert fleet.source.replaced(fleet.at(91)) == {}
    assert fleet.source.replaced(fleet.at(150)) == {}, "engine-2 began while engine-1 still sent"
    assert fleet.source.replaced(fleet.at(600)) == {}, "silence of both"
    fleet.arrive(fleet.rounds(300, ["P128"] * 60, ENGINE), ENGINE)
    assert fleet.source.replaced(fleet.at(361)) == {}, "it was away for long, and is back"


def test_a_stuck_engines_alert_ends_with_its_replacement(fleet: Fleet, clickhouse_url: str, tmp_path: Path) -> None:
    clock = VirtualClock()
    source = AtTime(clickhouse_url, fleet, clock)
    new = ENGINE._replace(service_instance_id="engine-2")
    with ExitStack() as running:
        one = Evaluating(tmp_path, running, [RULES.named("StuckInPlain")], clock=clock, source=source)
        fleet.cell(0, 30)
        fleet.cell(1, 30)
        fleet.arrive(fleet.rounds(60, ["P128"]))
        clock.seconds = 62.0
        one.after(0)
        assert one.state("StuckInPlain") == "firing"
        fleet.arrive(fleet.rounds(70, ["P128"] * 60, new), new)
        one.after(25)
        assert one.state("StuckInPlain") == "firing", "the old one may be back"
        one.after(10)
        assert one.state("StuckInPlain") == "gone"
        (told,) = one.told("StuckInPlain")
    assert told.ends_at
    assert told.annotations["summary"].startswith("replaced by engine-2, last: node-1 (engine-1) sits in plain decode")


class AtTime(StoredSource):
    """A store at a time that the test says; no collector is behind it."""

    def __init__(self, url: str, fleet: Fleet, clock: VirtualClock) -> None:
        super().__init__(url, "http://127.0.0.1:9")
        self._fleet, self._clock = fleet, clock

    def store_time(self) -> datetime:
        return self._fleet.at(self._clock.seconds)


def test_what_the_collector_still_holds_is_no_silence(fleet: Fleet) -> None:
    """After an hour without ClickHouse the oldest is stored first; what an engine sent since then waits behind it."""
    heard_for_three_cells(fleet)
    rule = RULES.named("EngineSilent")
    draining = rule.model_copy(update={"parameters": {"behind_s": 3550}})
    assert Watch(fleet, "EngineSilent", draining).states(3600, 3625) == ["inactive", "inactive"]
    assert Watch(fleet, "EngineSilent", rule).states(3600, 3625) == ["pending", "firing"]


def test_executions_lost(fleet: Fleet) -> None:
    watch = Watch(fleet, "ExecutionsLost")
    fleet.cell(0, 0)
    fleet.cell(1, 0)
    assert watch.states(after(2)) == ["inactive"]
    fleet.sequence(ENGINE)
    fleet.cell(2, 0)
    assert watch.states(after(3)) == ["inactive"], "the newest window may not be complete"
    fleet.cell(3, 0)
    assert watch.states(after(4), after(4) + 20, after(4) + 31) == ["pending", "pending", "firing"]
    assert "lost executions on the way to the store: 1 (" in watch.entry.annotations["summary"]
    for number in range(4, 16):
        fleet.cell(number, 0)
    assert watch.end(after(14)) == ENDED


def test_clock_skew(fleet: Fleet) -> None:
    watch = Watch(fleet, "ClockSkew")
    for number in range(3):
        fleet.cell(number, 0, delay_s=-9.9)
    assert watch.states(after(3)) == ["inactive"]
    fast = ENGINE._replace(service_instance_id="engine-2", host_name="fast")
    for number in range(3, 7):
        fleet.cell(number, 0, fast, delay_s=-10.1)
    assert watch.states(after(5), after(6), after(7) + 1) == ["pending", "pending", "firing"]
    assert watch.entry.annotations["summary"] == "The clock of fast is ahead, by 10.1 s at least"
    for number in range(7, 12):
        fleet.cell(number, 0, fast, delay_s=-6.0)
    assert watch.states(after(9), after(12)) == ["firing", "firing"], "6 s is not below 5"
    for number in range(12, 15):
        fleet.cell(number, 0, fast, delay_s=-1.0)
    assert watch.end(after(15)) == ENDED


def test_collector_backlog(fleet: Fleet) -> None:
    watch = Watch(fleet, "CollectorBacklog")

    def row(waiting_s: float) -> list[dict[str, float]]:
        return [
            {
                "oldest_waiting_s": waiting_s,
                "pending_requests": 7,
                "pending_bytes": 7000,
                "spool_fraction": 0.1,
                "set_aside_requests": 0,
            }
        ]

    seen = []
    for second, waiting_s in enumerate([60, 60.1, 61, 62, 63, 15]):
        watch.see(row(waiting_s), 15 * second)
        seen.append(watch.state)
    assert seen == ["inactive", "pending", "pending", "firing", "firing", "firing"]
    assert watch.end_seeing(row(14.9), 90) == ENDED


def test_store_full(fleet: Fleet) -> None:
    watch = Watch(fleet, "StoreFull")
    seen = []
    for second, fraction in enumerate([0.8, 0.81, 0.9, 0.95, 0.95, 0.95, 0.76]):
        watch.see([{"store_fraction": fraction, "store_bytes": 7000, "store_dropped_rows": 0}], 15 * second)
        seen.append(watch.state)
    assert seen == ["inactive", "pending", "pending", "pending", "pending", "firing", "firing"]
    assert watch.entry.annotations["summary"] == "The embedded store takes 76% of what it may"
    assert watch.end_seeing([{"store_fraction": 0.74}], 105) == ENDED
    assert watch.entry.annotations["summary"] == "The embedded store takes 74% of what it may"


def test_look_failing(fleet: Fleet) -> None:
    watch = Watch(fleet, "LookFailing")
    failing = {"look": "judging", "look_failure": "cells not judged", "look_error": "Code: 47. no such column"}
    for failing_s, state in ((300.0, "inactive"), (300.1, "firing"), (900.0, "firing")):
        watch.see([{"look_failing_s": failing_s, **failing}], failing_s)
        assert watch.state == state
    assert watch.entry.annotations["summary"] == "The collector fails at judging: cells not judged for 900 s"
    assert watch.entry.annotations["description"] == "Code: 47. no such column"
    assert watch.end_seeing([{"look_failing_s": 0.0, "look": "", "look_failure": "", "look_error": ""}], 930.0) == ENDED


def test_alerts_blind(fleet: Fleet) -> None:
    watch = Watch(fleet, "AlertsBlind")
    for blind_s, state in ((60.0, "inactive"), (60.1, "firing")):
        watch.see([{"blind_s": blind_s, "rules_failing": 2, "failing": "StuckInPlain: away"}], blind_s)
        assert watch.state == state
    assert watch.end_seeing([{"blind_s": 0.0}], 70.0) == ENDED


def test_every_shipped_rule_is_well_and_tested_here() -> None:
    assert not RULES.refused
    assert not RULES.warnings
    names = {rule.alert for rule in load_rules().rules}
    assert len(names) == len(list(SHIPPED.glob("*.yaml")))
    source = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in names if f'Watch(fleet, "{name}")' not in source} == set()


def test_what_arrives_an_hour_late_is_history_and_no_news(fleet: Fleet) -> None:
    """An engine was stuck while its collector was away, and recovered. What it kept of that hour wakes nobody."""
    watch = Watch(fleet, "StuckInPlain")
    for number in range(3):
        fleet.cell(number, 0)
    assert watch.states(after(3)) == ["inactive"]
    drained_s = 3600.0
    for number in range(100, 118):
        fleet.cell_arriving(number, 30, at_s=drained_s)
    assert watch.states(drained_s + 2) == ["inactive"]
    for number in range(118, 123):
        fleet.cell(number, 0)
    assert watch.states(after(121), after(123)) == ["inactive", "inactive"]


def test_looking_back_where_something_is_suspected_finds_as_much(fleet: Fleet) -> None:
    """An engine is well, is fooled and stuck for three cells, and is well again."""
    right, fooled = (believing({"P128": (ms, 10.0), "decode": (13.0, 4.4)}) for ms in (28.0, 34.0))
    for number in range(14):
        if number in (3, 4, 5):
            executions = fleet.rounds(number * CELL_S, ["decode"] * 30, gpu_ms=13.0, wall_ms=990.0, **fooled)
        else:
            executions = fleet.rounds(number * CELL_S, ["P128"] * 30, gpu_ms=28.0, **right)
        fleet.arrive(executions)
    since, until = fleet.at(CELL_S), fleet.at(15 * CELL_S)
    rules = [RULES.named(name) for name in ("StuckInPlain", "EstimateInflation")]
    everywhere = planned(rules[0].model_copy(update={"suspects": None}), fleet.source, since, until, None)
    thorough = [looked_back(rule, fleet, everywhere) for rule in rules]
    assert [(len(episodes), looks) for episodes, looks in thorough] == [(1, 15), (1, 15)]
    unjudged = planned(rules[1], fleet.source, since, until, None)
    assert all(map(unjudged.is_worth_it, unjudged.at)), "what nobody judged is suspected"
    judge_cells(fleet.client, 86_400)
    for rule, (expected, _) in zip(rules, thorough, strict=True):
        episodes, looks = looked_back(rule, fleet, planned(rule, fleet.source, since, until, None))
        fired = [(one.alert, one.identity, one.fired_at, one.ended_at, one.ended) for one in episodes]
        assert fired == [(one.alert, one.identity, one.fired_at, one.ended_at, one.ended) for one in expected]
        assert looks < 15


def looked_back(rule: Rule, fleet: Fleet, plan: Plan) -> tuple[tuple[Episode, ...], int]:
    """What would have fired, and how often the store was asked for it."""
    counted = Counting(fleet.source)
    return backtest(rule, counted, plan), counted.looks


class Counting:
    """A source, and how often it was asked."""

    def __init__(self, source: StoredSource) -> None:
        self._source = source
        self.looks = 0

    def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> Rows:
        self.looks += 1
        return self._source.rows(rule, at, is_now=is_now)


def test_late_data_of_a_stuck_engine_neither_resolves_nor_forgets(fleet: Fleet) -> None:
    watch = Watch(fleet, "StuckInPlain")
    for number, plain in enumerate((0, 30, 30)):
        fleet.cell(number, plain)
    assert watch.states(after(3), after(10)) == ["firing", "no_data"]
    for number in range(3, 13):
        fleet.cell_arriving(number, 0, at_s=600.0)
    assert watch.states(602) == ["no_data"], "healthy cells of ten minutes ago say nothing of now"
    for number in range(20, 22):
        fleet.cell(number, 30)
    assert watch.states(after(22)) == ["firing"]


def test_an_engine_that_leaves_for_good(fleet: Fleet) -> None:
    """Somebody is told that it is silent; nothing of it is ever resolved."""
    stuck, silent = Watch(fleet, "StuckInPlain"), Watch(fleet, "EngineSilent")
    for number, plain in enumerate((0, 30, 30)):
        fleet.cell(number, plain)
    assert stuck.states(after(3)) == ["firing"]
    assert silent.states(after(3), 160, 181) == ["inactive", "pending", "firing"]
    assert stuck.states(after(10), 3000, 3950) == ["no_data", "no_data", "gone"]
    assert silent.states(3600, 3700) == ["firing", "no_data"], "beyond the hour it is not known that it ever was"
    assert silent.entry.standing.fires

"""The evaluator in virtual time: outages, restarts, jumps of the clock, things that hang."""

import threading
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from queries.alerts.book import Change
from queries.alerts.errors import AlertStateError
from queries.alerts.evaluator import run_every
from queries.alerts.history import row_of
from queries.alerts.loading import load_rules
from queries.alerts.memory import remembered
from queries.alerts.notifying import NotDeliveredError
from queries.alerts.states import Standing, State
from queries.errors import UnreachableError
from tests.fixtures.alert_evaluators import DEADLINE_S, START, Evaluating, Kept, VirtualClock, row, rule, waited_for
from tests.fixtures.alert_state import entry


def test_an_alert_from_beginning_to_end(tmp_path: Path, running: ExitStack) -> None:
    kept = Kept()
    one = Evaluating(tmp_path, running, [rule(**{"for": "20s", "keep_firing_for": "10s"})], receivers=[kept])
    one.source.answers["TooMuch"] = [row(2.0)]
    changes = one.over(40)
    assert [(str(change.before), str(change.entry.standing.state)) for change in changes] == [
        ("inactive", "pending"),
        ("pending", "firing"),
    ]
    (alert,) = one.told()
    assert (alert.starts_at, alert.ends_at) == (START + timedelta(seconds=1030), None)
    one.source.answers["TooMuch"] = [row(0.0)]
    assert [str(change.entry.standing.state) for change in one.over(30)] == ["resolved"]
    (ended,) = one.told()
    assert (ended.starts_at, ended.ends_at) == (alert.starts_at, START + timedelta(seconds=1060))
    assert "2.0 on a" in ended.annotations["summary"], "what it was when it last fired"
    one.over(900)
    assert one.told() == []
    waited_for(lambda: kept.calls and kept.calls[-1][0].ends_at)


def test_an_hour_without_clickhouse(tmp_path: Path, running: ExitStack) -> None:
    """Whoever fired goes on firing, nobody is given up, somebody is woken for the blindness; then all goes on as if
    nothing had been."""
    blind = load_rules().named("AlertsBlind")
    one = Evaluating(tmp_path, running, [rule(forget_after="10m"), rule("Waiting", **{"for": "60s"}), blind])
    one.source.answers = {"TooMuch": [row(2.0)], "Waiting": [row(2.0)]}
    one.over(30)
    began = one.told()[0].starts_at
    one.source.is_away = True
    assert {str(change.entry.standing.state) for change in one.over(30)} == {"no_data"}
    assert [str(change.entry.standing.state) for change in one.over(3570)] == ["firing"], "AlertsBlind"
    assert (one.state(), one.state("Waiting"), one.state("AlertsBlind")) == ("no_data", "no_data", "firing")
    assert one.told()[0].starts_at == began
    assert "nothing is known" in one.told()[0].annotations["no_data"]
    assert "no ClickHouse answers" in one.told("AlertsBlind")[0].annotations["description"]
    one.source.is_away = False
    one.after(10)
    assert (one.state(), one.told()[0].starts_at, one.state("AlertsBlind")) == ("firing", began, "firing")
    assert one.state("Waiting") == "pending", "an hour in which nothing was seen is no hour in which it held"
    one.over(40)
    assert one.state("Waiting") == "firing"
    one.over(80)
    assert one.state("AlertsBlind") == "resolved"


def test_what_is_wrong_with_several_rules_is_logged_once(tmp_path: Path, running: ExitStack) -> None:
    one = Evaluating(tmp_path, running, [rule(), rule("Another"), rule("Third")])
    one.source.answers["Third"] = UnreachableError("another error")
    one.source.is_away = True
    with capture_logs() as logged:
        one.over(30)
        one.source.is_away = False
        one.over(30)
    told = [(line["event"], line["rules"], line.get("error")) for line in logged if "rules" in line]
    assert told == [
        ("rules cannot be evaluated", ["Another", "Third", "TooMuch"], "no ClickHouse answers"),
        ("rules are evaluated again", ["Another", "TooMuch"], None),
    ]


def test_rules_that_fail_differently_are_logged_each(tmp_path: Path, running: ExitStack) -> None:
    one = Evaluating(tmp_path, running, [rule(), rule("Another"), rule("Third")])
    refused, absent = UnreachableError("refused"), UnreachableError("absent")
    one.source.answers = {"TooMuch": refused, "Another": refused, "Third": absent}
    with capture_logs() as logged:
        one.over(30)
    told = [(line["rules"], line["error"]) for line in logged if line["event"] == "rules cannot be evaluated"]
    assert told == [(["Another", "TooMuch"], "refused"), (["Third"], "absent")]


def test_an_engine_that_leaves_for_good_is_given_up_and_not_resolved(tmp_path: Path, running: ExitStack) -> None:
    one = Evaluating(tmp_path, running, [rule()])
    one.source.answers["TooMuch"] = [row(2.0), row(2.0, "b")]
    one.after(10)
    one.source.answers["TooMuch"] = [row(2.0, "b")]
    changes = one.over(3620)
    assert [str(change.entry.standing.state) for change in changes] == ["no_data", "gone"]
    gone = next(alert for alert in one.told() if alert.labels["host_name"] == "a")
    assert gone.ends_at
    assert "not seen to recover" in gone.annotations["gone"]
    assert gone.annotations["summary"] == "given up, last: 2.0 on a"


def test_alerts_of_an_engine_that_was_replaced_are_given_up_at_once(tmp_path: Path, running: ExitStack) -> None:
    """Those with data, those without, and those that did not come to fire; no other engine's."""
    of_engines = rule("OfEngines", identity=["service_instance_id"], finding_of="cell")
    slow = rule("Slow", identity=["service_instance_id"], **{"for": "1h"})
    one = Evaluating(tmp_path, running, [rule(), of_engines, slow])
    rows = [row(2.0, service_instance_id=name) for name in ("old", "other")]
    one.source.answers = {"TooMuch": rows, "OfEngines": rows, "Slow": rows}
    one.after(10)
    one.source.answers["OfEngines"] = []
    assert {str(change.entry.standing.state) for change in one.after(10)} == {"no_data"}
    one.source.replacements = {"old": "new"}
    changes = one.after(10)
    assert [(c.entry.rule, c.entry.labels["service_instance_id"], str(c.entry.standing.state)) for c in changes] == [
        ("OfEngines", "old", "gone"),
        ("Slow", "old", "inactive"),
    ]
    told = {alert.labels["service_instance_id"]: alert for alert in one.told("OfEngines")}
    assert told["old"].ends_at == START + timedelta(seconds=1030)
    assert told["old"].annotations["summary"] == "replaced by new, last: 2.0 on a"
    assert told["old"].annotations["gone"] == "its engine was replaced by new, whose alerts are its own"
    assert told["other"].ends_at is None
    batch = one.memory.batch()
    assert batch
    kept = [row for row in batch.rows if row["alertname"] == "OfEngines"][-1]
    assert (kept["state_before"], kept["state"]) == ("no_data", "gone")
    assert kept["annotations"]["summary"] == "replaced by new, last: 2.0 on a"
    assert one.over(600) == [], "it stays ended, and is told for a while"
    assert [str(change.before) for change in one.over(400)] == ["gone"]
    assert [alert.labels["service_instance_id"] for alert in one.told("OfEngines")] == ["other"]


def test_an_engine_that_was_replaced_begins_no_alert(tmp_path: Path, running: ExitStack) -> None:
    """Its last cells are judged only once they are over."""
    one = Evaluating(tmp_path, running, [rule(identity=["service_instance_id"])])
    one.source.replacements = {"old": "new"}
    one.source.answers["TooMuch"] = [row(2.0, service_instance_id=name) for name in ("old", "new")]
    changes = one.over(30)
    assert [change.entry.labels["service_instance_id"] for change in changes] == ["new"]


def test_who_was_replaced_is_asked_only_where_a_rule_is_of_engines(tmp_path: Path, running: ExitStack) -> None:
    every = rule("Seldom", identity=["service_instance_id"], every="30s")
    one = Evaluating(tmp_path, running, [rule(), every])
    asked: list[object] = []
    one.source.replaced = lambda at: asked.append(at) or {}  # type: ignore[func-returns-value,method-assign]
    one.over(60)
    assert len(asked) == 2
    one.source.is_away = True
    one.over(60)
    assert len(asked) == 2, "without the store's time nothing is asked"


def test_where_nobody_tells_who_was_replaced_nobody_is_given_up(tmp_path: Path, running: ExitStack) -> None:
    def refused(at: object) -> dict[str, str]:
        raise UnreachableError(f"no answer as of {at}")

    one = Evaluating(tmp_path, running, [rule(identity=["service_instance_id"])])
    one.source.replaced = refused  # type: ignore[method-assign]
    one.source.answers["TooMuch"] = [row(2.0, service_instance_id="e")]
    one.after(10)
    one.source.answers["TooMuch"] = []
    one.over(30)
    assert (one.state(), one.evaluator.counts["replacements_unknown"]) == ("no_data", 4)


def test_receivers_read_that_what_fires_on_is_clear(tmp_path: Path, running: ExitStack) -> None:
    one = Evaluating(tmp_path, running, [rule(keep_firing_for="60s", forget_after="60s")])
    one.source.answers["TooMuch"] = [row(2.0)]
    one.after(10)
    (fires,) = one.told()
    assert fires.annotations["summary"] == "2.0 on a"
    assert "clear" not in fires.annotations
    one.source.answers["TooMuch"] = [row(0.0)]
    one.after(10)
    (clear,) = one.told()
    assert (clear.starts_at, clear.ends_at) == (fires.starts_at, None)
    assert clear.annotations["summary"] == "last: 2.0 on a"
    assert clear.annotations["clear"] == "it is clear now: it ends soon, unless it comes back"
    one.source.answers["TooMuch"] = []
    one.after(10)
    assert one.told()[0].annotations["summary"] == "last: 2.0 on a"
    assert "clear" not in one.told()[0].annotations, "nothing is known of it now"
    one.source.answers["TooMuch"] = [row(3.0)]
    one.after(10)
    assert one.told()[0].annotations["summary"] == "3.0 on a"
    assert "clear" not in one.told()[0].annotations


@pytest.mark.parametrize("state", [State.FIRING, State.NO_DATA, State.GONE])
def test_lists_and_receivers_say_the_same(state: State) -> None:
    clear_s = 30.0 if state == State.FIRING else None
    one = replace(entry("A", state), standing=Standing(state, clear_s=clear_s))
    assert one.alert("").annotations["summary"] == one.summary
    assert f"last: {one.annotations['summary']}" in one.summary
    assert row_of(Change(one, State.PENDING), START)["annotations"]["summary"] == one.summary


@pytest.mark.parametrize("jump_s", [3600, -3600, 86400 * 365])
def test_a_jump_of_the_calendar_moves_no_alert(tmp_path: Path, running: ExitStack, jump_s: float) -> None:
    one = Evaluating(tmp_path, running, [rule(**{"for": "30s", "keep_firing_for": "30s"})])
    one.source.answers["TooMuch"] = [row(2.0)]
    one.over(20)
    one.clock.calendar_off = timedelta(seconds=jump_s)
    assert one.over(10) == []
    assert [str(change.entry.standing.state) for change in one.over(10)] == ["firing"]
    one.source.answers["TooMuch"] = [row(0.0)]
    one.over(20)
    one.clock.calendar_off = timedelta()
    assert one.over(10) == []
    assert [str(change.entry.standing.state) for change in one.over(10)] == ["resolved"]


def test_a_restart_neither_tells_anew_nor_forgets(tmp_path: Path, running: ExitStack) -> None:
    rules = [rule(), rule("Waiting", **{"for": "60s"})]
    clock = VirtualClock()
    with ExitStack() as first:
        one = Evaluating(tmp_path, first, rules, clock=clock)
        one.source.answers = {"TooMuch": [row(2.0)], "Waiting": [row(2.0)]}
        one.over(40)
        before = one.told()
    clock.seconds += 500
    kept = Kept()
    again = Evaluating(tmp_path, running, rules, clock=clock, receivers=[kept])
    again.source.answers = one.source.answers
    assert again.after(10) == ()
    waited_for(lambda: kept.calls)  # Before anything else is put beside it.
    assert again.told() == before
    assert again.state("Waiting") == "pending", "it held for 30 s when last seen"
    again.over(30)
    assert again.state("Waiting") == "firing"
    assert kept.calls[0] == tuple(before)


def test_while_it_was_down_the_trouble_ended(tmp_path: Path, running: ExitStack) -> None:
    with ExitStack() as first:
        one = Evaluating(tmp_path, first, [rule()])
        one.source.answers["TooMuch"] = [row(2.0)]
        one.after(10)
    again = Evaluating(tmp_path, running, [rule()])
    again.source.answers["TooMuch"] = [row(0.0)]
    assert [str(change.entry.standing.state) for change in again.after(10)] == ["resolved"]
    assert again.told()[0].ends_at


FLAPPING = [2.0, 0.0, 0.0, 2.0, 0.0, None, None, 0.7, 0.0, 0.0, 2.0, None, 0.0, 2.0] * 3
"""In breach, clear, unknown, between the thresholds: never clear for as long as the rule fires on."""


@pytest.mark.parametrize("restarted_at", [None, *range(1, len(FLAPPING), 4)])
def test_an_episode_that_flaps_is_told_once(tmp_path: Path, running: ExitStack, restarted_at: int | None) -> None:
    """A new message would begin with a change to firing from anything but no_data, and each such has its start."""
    flapping = [rule(keep_firing_for="30s")]
    clock, stack = VirtualClock(), running.enter_context(ExitStack())
    one = Evaluating(tmp_path, stack, flapping, clock=clock)
    starts, changes = set(), []
    for n, x in enumerate(FLAPPING):
        if n == restarted_at:
            stack.close()
            clock.seconds += 200
            one = Evaluating(tmp_path, stack, flapping, clock=clock)
        one.source.answers["TooMuch"] = [] if x is None else [row(x)]
        changes += one.after(10)
        (alert,) = one.told()
        starts.add((alert.starts_at, alert.ends_at))
    assert starts == {(START + timedelta(seconds=1010), None)}, "at once, as without keep_firing_for, and never again"
    assert {str(change.entry.standing.state) for change in changes} == {"firing", "no_data"}
    one.source.answers["TooMuch"] = [row(0.0)]
    assert one.over(30) == []
    (ended,) = one.after(10)
    assert str(ended.entry.standing.state) == "resolved"
    assert one.told()[0].annotations == {"summary": "over: 2.0 on a", "was": "2.0 on a", "runbook": "Look."}


def test_a_restart_goes_on_counting_how_long_it_has_been_clear(tmp_path: Path, running: ExitStack) -> None:
    rules, clock = [rule(keep_firing_for="60s", resolved="{x:.1f} on {host_name} is well")], VirtualClock()
    with ExitStack() as first:
        one = Evaluating(tmp_path, first, rules, clock=clock)
        one.source.answers["TooMuch"] = [row(2.0)]
        one.after(10)
        one.source.answers["TooMuch"] = [row(0.0)]
        assert one.over(50) == [], "clear for 40 s"
    clock.seconds += 500
    again = Evaluating(tmp_path, running, rules, clock=clock)
    again.source.answers["TooMuch"] = [row(0.1)]
    assert again.after(10) == (), "what nobody saw does not count"
    assert again.after(10) == ()
    assert [str(change.entry.standing.state) for change in again.after(10)] == ["resolved"]
    assert again.told()[0].annotations["summary"] == "0.1 on a is well"


def test_alerts_of_a_rule_that_was_taken_away_are_given_up(tmp_path: Path, running: ExitStack) -> None:
    with ExitStack() as first:
        one = Evaluating(tmp_path, first, [rule()])
        one.source.answers["TooMuch"] = [row(2.0)]
        one.after(10)
    kept = Kept()
    again = Evaluating(tmp_path, running, [rule("Other")], receivers=[kept])
    assert [str(change.entry.standing.state) for change in again.after(10)] == ["gone"]
    assert again.after(10) == ()
    waited_for(lambda: kept.calls)
    assert kept.calls[0][0].ends_at


def test_a_rule_that_hangs_delays_the_others_by_no_more_than_one_answer(tmp_path: Path, running: ExitStack) -> None:
    release = threading.Event()
    running.callback(release.set)
    one = Evaluating(tmp_path, running, [rule(), rule("Hangs")], answer_s=0.2)

    def hangs(_at: Any) -> list[dict[str, Any]]:
        assert release.wait(DEADLINE_S)
        return []

    one.source.answers = {"TooMuch": [row(2.0)], "Hangs": hangs}
    threads = threading.active_count()
    with capture_logs() as logged:
        for _ in range(5):
            one.after(10)
    assert one.state() == "firing"
    assert threading.active_count() <= threads + 1, "it is not asked again before it has answered"
    assert one.evaluator.counts["evaluations_skipped"] == 4
    assert one.evaluator.counts["evaluations_failed"] == 5
    assert any("no answer within 0.2 s" in str(line.get("error")) for line in logged)
    assert remembered(tmp_path)[1]["evaluations_skipped"] == 4


def test_a_rule_that_fails_blinds_no_other(tmp_path: Path, running: ExitStack) -> None:
    one = Evaluating(tmp_path, running, [rule("Broken"), rule()])
    one.source.answers = {"TooMuch": [row(2.0)], "Broken": ZeroDivisionError("a defect")}
    one.over(20)
    assert one.state() == "firing"


class Dead:
    """A receiver that never answers, or always refuses."""

    name = "dead"

    def __init__(self, hangs: threading.Event | None = None) -> None:
        self.hangs = hangs
        self.calls = 0

    def send(self, _alerts: Any) -> None:
        self.calls += 1
        if self.hangs:
            self.hangs.wait(DEADLINE_S)
        raise NotDeliveredError("dead")


@pytest.mark.parametrize("hangs", [True, False])
def test_a_dead_receiver_delays_nothing(tmp_path: Path, running: ExitStack, hangs: bool) -> None:
    release = threading.Event()
    running.callback(release.set)
    dead, kept = Dead(release if hangs else None), Kept()
    one = Evaluating(tmp_path, running, [rule()], receivers=[dead, kept])
    running.callback(release.set)
    one.source.answers["TooMuch"] = [row(2.0)]
    for n in range(3):
        one.after(10)
        waited_for(lambda n=n: len(kept.calls) > n)
    waited_for(lambda: dead.calls == (1 if hangs else 3))


def test_what_ended_while_a_receiver_was_away_reaches_it_later(tmp_path: Path, running: ExitStack) -> None:
    failing = threading.Event()
    failing.set()

    def refuse() -> None:
        if failing.is_set():
            raise NotDeliveredError("away")

    kept = Kept(refuse)
    one = Evaluating(tmp_path, running, [rule()], receivers=[kept])
    one.source.answers["TooMuch"] = [row(2.0)]
    one.after(10)
    one.source.answers["TooMuch"] = [row(0.0)]
    handing = one.evaluator.receivers[0]
    for n in range(95):
        one.after(10)
        waited_for(lambda n=n: handing.failed > min(n, 89))
    assert one.told() == [], "it is told no longer"
    failing.clear()
    one.source.answers["TooMuch"] = [row(2.0, "b")]
    one.after(10)
    waited_for(lambda: kept.calls)
    assert {alert.labels["host_name"]: bool(alert.ends_at) for alert in kept.calls[0]} == {"a": True, "b": False}


def test_intervals_that_were_overrun_are_left_out_and_counted(tmp_path: Path, running: ExitStack) -> None:
    one = Evaluating(tmp_path, running, [rule()])
    began = one.clock.seconds
    evaluated_at: list[float] = []

    def slow(_at: Any) -> list[dict[str, Any]]:
        evaluated_at.append(one.clock.seconds - began)
        one.clock.seconds += 35 if len(evaluated_at) == 1 else 0
        return []

    class Waiting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            one.clock.seconds += timeout or 0.0
            if len(evaluated_at) == 3:
                self.set()
            return self.is_set()

    one.source.answers["TooMuch"] = slow
    one.evaluator.stopping = Waiting()
    run_every(one.evaluator, 10.0)
    assert evaluated_at == [0, 40, 50]
    assert one.evaluator.counts["evaluations_skipped"] == 3


def test_a_full_disk_stops_no_alert(tmp_path: Path, running: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    one = Evaluating(tmp_path, running, [rule()], receivers=[kept])

    def full(*_: Any) -> None:
        raise AlertStateError("no space left on device")

    one.source.answers["TooMuch"] = [row(2.0)]
    with monkeypatch.context() as patched:
        patched.setattr(one.memory, "keep", full)
        one.after(10)
        waited_for(lambda: kept.calls)
    one.after(10)
    batch = one.memory.batch()
    assert batch
    assert [one["state"] for one in batch.rows] == ["firing"], "what happened meanwhile is in the history"
    assert remembered(tmp_path)[0]


def test_told_to_stop_it_does_not_wait_for_an_answer(tmp_path: Path, running: ExitStack) -> None:
    release = threading.Event()
    running.callback(release.set)
    one = Evaluating(tmp_path, running, [rule()])

    def hangs(_at: Any) -> list[dict[str, Any]]:
        one.evaluator.stopping.set()
        assert release.wait(DEADLINE_S)
        return [row(2.0)]

    one.source.answers["TooMuch"] = hangs
    run_every(one.evaluator, 10.0)
    assert one.state() == "inactive"
    assert not remembered(tmp_path)[1]

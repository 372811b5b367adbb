"""What people are told, when, and what happens if they cannot be told."""

import json
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from queries.alerts.delivery.attempts import again
from queries.alerts.delivery.errors import NotKeptError, ReceiverAwayError, ReceiverRefusedError
from queries.alerts.delivery.groups import Group, fingerprint, grouped
from queries.alerts.delivery.messages import body, title
from queries.alerts.delivery.notified import KEPT_FOR, Notified
from queries.alerts.delivery.people import AWAY_PAUSE_MAX_S, AWAY_PAUSE_MIN_S, REFUSED_PAUSE_S, ToPeople
from queries.alerts.delivery.settings import DeliverySettings
from queries.alerts.delivery.silences import OwnSilences, new_silence
from queries.alerts.delivery.webhook import ALERTS_MAX, payload
from queries.alerts.notifying import Alert, NotDeliveredError
from tachograph import Settings
from tests.fixtures.alert_receivers import BEGAN, WITHIN_S, alert, minutes

REPEAT = timedelta(hours=4)


class Heard:
    """A channel that keeps what it is told, and fails as it is told to."""

    name = "test"

    def __init__(self, at_once: int = 1) -> None:
        self.at_once = at_once
        self.groups: list[Group] = []
        self.attempts = 0
        self.failures: dict[str, list[NotDeliveredError]] = {}

    def tell(self, group: Group) -> None:
        self.attempts += 1
        if failures := self.failures.get(group.key):
            raise failures.pop()
        self.groups.append(group)

    def told(self) -> list[tuple[str, list[str]]]:
        """What came since the last call: status, and the summaries."""
        said = [(group.status, [one.annotations["summary"] for one in group.alerts]) for group in self.groups]
        self.groups.clear()
        return said


class Person:
    """One receiver with a clock of the test's; `restarted` is the next process with the same directory."""

    def __init__(self, directory: Path, heard: Heard | None = None) -> None:
        self.directory = directory
        self.now = BEGAN + minutes(1)
        self.heard = heard or Heard()
        self.silences = OwnSilences(directory / "silences")
        self.restarted()

    def restarted(self) -> None:
        self.receiver = ToPeople(
            self.heard,
            Notified(self.directory / "told.json", REPEAT),
            self.silences,
            retrying=again(3, 0),
            now=lambda: self.now,
            elapsed_s=self.elapsed_s,
        )

    def elapsed_s(self) -> float:
        return (self.now - BEGAN).total_seconds()

    def send(self, *alerts: Alert) -> list[tuple[str, list[str]]]:
        self.receiver.send(alerts)
        return self.heard.told()


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def ended_at(one: Alert, instant: datetime) -> Alert:
    return replace(one, ends_at=instant)


def test_tells_what_fires_once_and_its_end_once(person: Person) -> None:
    stuck = alert(summary="stuck")
    assert person.send(stuck) == [("firing", ["stuck"])]
    person.now += minutes(1)
    assert person.send(alert(summary="measured again")) == []
    over = ended_at(stuck, person.now)
    assert person.send(over) == [("resolved", ["stuck"])]
    person.now += minutes(1)
    assert person.send(over) == []


def test_an_end_of_which_nobody_heard_the_beginning_is_no_news(person: Person) -> None:
    assert person.send(alert(ended=BEGAN + minutes(0.5))) == []


def test_one_that_joins_or_leaves_its_group_is_news(person: Person) -> None:
    first, second = alert(summary="cell 1", cell="c1"), alert(summary="cell 2", cell="c2", since=BEGAN + minutes(0.5))
    assert person.send(first) == [("firing", ["cell 1"])]
    assert person.send(first, second) == [("firing", ["cell 1", "cell 2"])]
    over = ended_at(first, person.now)
    assert person.send(over, second) == [("firing", ["cell 2", "cell 1"])]
    assert person.send(over, second) == []
    assert person.send(over, ended_at(second, person.now)) == [("resolved", ["cell 2"])]


def test_what_fires_again_is_news(person: Person) -> None:
    stuck = alert()
    person.send(stuck)
    person.now += minutes(5)
    assert len(person.send(alert(since=person.now))) == 1


def test_rules_and_engines_are_told_apart(person: Person) -> None:
    told = person.send(alert(summary="1"), alert(summary="2", engine="engine-b"), alert("ClockSkew", summary="3"))
    assert sorted(told) == [("firing", ["1"]), ("firing", ["2"]), ("firing", ["3"])]


def skewed(host: str) -> Alert:
    return alert("ClockSkew", engine="", summary=host, host_name=host)


def test_a_host_that_joins_a_rule_about_hosts_repeats_nothing_of_the_others(person: Person) -> None:
    hosts = [skewed(f"gpu-{index}") for index in range(4)]
    for count, joined in enumerate(hosts, start=1):
        assert person.send(*hosts[:count]) == [("firing", [joined.annotations["summary"]])]
        person.now += timedelta(seconds=12)
    assert person.send(ended_at(hosts[1], person.now), hosts[0], *hosts[2:]) == [("resolved", ["gpu-1"])]


def test_an_alert_of_nothing_but_its_rule_has_its_rules_group(person: Person) -> None:
    blind = Alert({"alertname": "AlertsBlind", "severity": "critical"}, {"summary": "blind"}, BEGAN, None, "")
    (group,) = grouped([blind], person.now)
    assert group.key == '{}:{alertname="AlertsBlind"}'
    (group,) = grouped([skewed("gpu-1")], person.now)
    assert group.key == '{}:{alertname="ClockSkew", host_name="gpu-1"}'


def test_what_was_told_by_rule_before_is_not_told_again_and_its_end_is(person: Person) -> None:
    first, second = skewed("gpu-1"), skewed("gpu-2")
    marks = {fingerprint(one.labels): BEGAN.isoformat() for one in (first, second)}
    by_rule = {'{}:{alertname="ClockSkew"}': {"at": person.now.isoformat(), "firing": marks}}
    (person.directory / "told.json").write_text(json.dumps({"groups": by_rule}))
    person.restarted()
    assert person.send(first, second) == []
    assert person.send(ended_at(first, person.now), second) == [("resolved", ["gpu-1"])]
    person.restarted()
    assert person.send(ended_at(first, person.now), second) == []
    person.now += REPEAT
    assert person.send(second) == [("firing", ["gpu-2"])]
    kept = json.loads((person.directory / "told.json").read_text())["groups"]
    assert list(kept) == ['{}:{alertname="ClockSkew", host_name="gpu-2"}']


def test_what_still_fires_is_told_again_each_repeat_interval(person: Person) -> None:
    person.send(alert())
    person.now += REPEAT - minutes(1)
    assert person.send(alert()) == []
    person.now += minutes(1)
    assert len(person.send(alert())) == 1
    assert person.send(alert()) == []


def test_a_clock_set_back_by_a_day_does_not_silence_us_for_a_day(person: Person) -> None:
    person.send(alert())
    person.now -= minutes(2)
    assert person.send(alert()) == []
    person.now -= timedelta(days=1)
    assert len(person.send(alert())) == 1


def test_a_restart_tells_nothing_again_and_forgets_no_end(person: Person) -> None:
    person.send(alert(summary="stuck"))
    person.restarted()
    assert person.send(alert()) == []
    person.restarted()
    assert person.send(ended_at(alert(summary="stuck"), person.now)) == [("resolved", ["stuck"])]


def test_a_damaged_record_is_an_empty_one(person: Person) -> None:
    person.send(alert())
    (person.directory / "told.json").write_text('{"groups": {"x"')
    person.restarted()
    assert len(person.send(alert())) == 1


def test_what_was_told_is_known_though_it_cannot_be_kept(person: Person, tmp_path: Path) -> None:
    person.directory = tmp_path / "no-directory"
    person.directory.write_text("a file")
    person.restarted()
    with pytest.raises(NotKeptError, match="cannot be written"):
        person.send(alert())
    assert len(person.heard.told()) == 1
    assert person.send(alert()) == []


def test_groups_of_which_nothing_is_heard_are_forgotten(person: Person) -> None:
    person.send(alert())
    person.now += KEPT_FOR
    person.send(alert(engine="engine-b"))
    kept = json.loads((person.directory / "told.json").read_text())["groups"]
    assert list(kept) == ['{}:{alertname="StuckInPlain", service_instance_id="engine-b"}']


def test_a_channel_that_is_away_is_left_alone_ever_longer_and_told_what_is_true_then(person: Person) -> None:
    key = grouped([alert()], person.now)[0].key
    person.heard.failures[key] = [ReceiverAwayError("away")] * 1000
    calls = 0
    for _ in range(60 * 12):
        before = person.heard.attempts
        with pytest.raises(ReceiverAwayError):
            person.send(alert())
        calls += person.heard.attempts > before
        person.now += timedelta(seconds=5)
    # An hour: after 0, 5, 15 and 35 s, then each minute.
    assert calls == 4 + 59
    assert person.heard.attempts == 3 * calls
    person.heard.failures.clear()
    person.now += timedelta(seconds=AWAY_PAUSE_MAX_S)
    assert person.send(alert(summary="newer")) == [("firing", ["newer"])]
    assert person.send(ended_at(alert(), person.now)) == [("resolved", ["52 % of its decoding was plain"])]


def test_a_group_that_is_refused_waits_and_holds_up_no_other(person: Person) -> None:
    refused, other = alert("Refused", summary="refused"), alert(summary="other")
    person.heard.failures[grouped([refused], person.now)[0].key] = [ReceiverRefusedError("no")]
    with pytest.raises(ReceiverRefusedError):
        person.send(refused, other)
    assert person.heard.told() == [("firing", ["other"])]
    with pytest.raises(ReceiverRefusedError):
        person.send(refused, other)
    assert person.heard.attempts == 2
    person.now += timedelta(seconds=REFUSED_PAUSE_S + 1)
    assert person.send(refused, other) == [("firing", ["refused"])]


class Together(Heard):
    """Takes a message only with the others of its round, the first excepted: `waited` is how many there are."""

    def __init__(self, at_once: int) -> None:
        super().__init__(at_once)
        self.waited = threading.Barrier(at_once)

    def tell(self, group: Group) -> None:
        if group.labels["service_instance_id"] != "engine-00":
            self.waited.wait(WITHIN_S)
        super().tell(group)


def of_engines(count: int) -> list[Alert]:
    return [alert(engine=f"engine-{index:02}", summary=str(index)) for index in range(count)]


def test_a_channel_that_can_is_told_of_several_groups_at_the_same_time(tmp_path: Path) -> None:
    person = Person(tmp_path, Together(8))
    told = person.send(*of_engines(17))
    assert told[0] == ("firing", ["0"])
    assert sorted(told[1:9]) == sorted(("firing", [str(index)]) for index in range(1, 9))
    assert sorted(told[9:]) == sorted(("firing", [str(index)]) for index in range(9, 17))
    person.restarted()
    assert person.send(*of_engines(17)) == []


def test_of_messages_sent_together_each_is_remembered_for_itself(tmp_path: Path) -> None:
    person = Person(tmp_path, Heard(4))
    keys = [group.key for group in grouped(of_engines(9), person.now)]
    person.heard.failures = {keys[2]: [ReceiverAwayError("away")] * 3, keys[3]: [ReceiverRefusedError("no")]}
    with pytest.raises(ReceiverAwayError):
        person.send(*of_engines(9))
    assert sorted(person.heard.told()) == [("firing", ["0"]), ("firing", ["1"]), ("firing", ["4"])]
    person.now += timedelta(seconds=AWAY_PAUSE_MIN_S)
    with pytest.raises(ReceiverRefusedError):
        person.send(*of_engines(9))
    assert sorted(person.heard.told()) == [("firing", [str(index)]) for index in (2, 5, 6, 7, 8)]
    person.now += timedelta(seconds=REFUSED_PAUSE_S)
    assert person.send(*of_engines(9)) == [("firing", ["3"])]


def test_a_channel_that_is_away_is_tried_with_one_group_only(tmp_path: Path) -> None:
    person = Person(tmp_path, Heard(8))
    key = grouped(of_engines(1), person.now)[0].key
    person.heard.failures[key] = [ReceiverAwayError("away")] * 3
    with pytest.raises(ReceiverAwayError):
        person.send(*of_engines(9))
    assert person.heard.attempts == 3


def test_a_silence_holds_until_its_end_over_restarts(person: Person) -> None:
    person.silences.create(new_silence(["host_name=~host-of-.*-a"], "10m", "known", "me", person.now), person.now)
    person.restarted()
    assert person.send(alert(), alert(engine="engine-b", summary="other")) == [("firing", ["other"])]
    person.now += minutes(10)
    assert person.send(alert(summary="still stuck")) == [("firing", ["still stuck"])]


def test_what_began_and_ended_silenced_is_told_when_it_begins_again(person: Person) -> None:
    person.send(alert())
    made = person.silences.create(new_silence(["alertname=StuckInPlain"], "1h", "known", "me", person.now), person.now)
    person.now += minutes(1)
    assert person.send(ended_at(alert(), person.now)) == []
    assert person.silences.expire(made, person.now)
    assert len(person.send(alert(since=person.now))) == 1


def test_the_payload_is_version_4() -> None:
    over = ended_at(alert(cell="c0", summary="was"), BEGAN + minutes(1))
    (group,) = grouped([alert(cell="c1", summary="is"), over], BEGAN + minutes(2))
    told = payload(group, "http://dashboards")
    assert told["groupKey"] == '{}:{alertname="StuckInPlain", service_instance_id="engine-a"}'
    assert told["groupLabels"] == {"alertname": "StuckInPlain", "service_instance_id": "engine-a"}
    assert (told["version"], told["status"], told["truncatedAlerts"]) == ("4", "firing", 0)
    assert told["externalURL"] == "http://dashboards"
    assert "cell" not in told["commonLabels"]
    assert told["commonLabels"]["host_name"] == "host-of-engine-a"
    assert told["commonAnnotations"] == {}
    assert [(one["status"], one["endsAt"]) for one in told["alerts"]] == [
        ("firing", "0001-01-01T00:00:00Z"),
        ("resolved", "2026-11-01T12:01:00.25Z"),
    ]
    assert told["alerts"][0]["startsAt"] == "2026-11-01T12:00:00.25Z"


def test_the_payload_is_bounded_and_says_so() -> None:
    (group,) = grouped([alert(cell=f"c{index}") for index in range(ALERTS_MAX + 3)], BEGAN)
    told = payload(group, "")
    assert (len(told["alerts"]), told["truncatedAlerts"]) == (ALERTS_MAX, 3)


def test_messages_say_what_where_and_since_when() -> None:
    over = ended_at(alert(cell="c0", summary="was"), BEGAN + minutes(1))
    (group,) = grouped([over, *(alert(cell=f"c{index}", summary="stuck") for index in range(1, 8))], BEGAN + minutes(2))
    assert title(group) == "FIRING: StuckInPlain on host-of-engine-a (7 alerts)"
    assert body(group).startswith("stuck\nsince 2026-11-01 12:00:00 UTC\nhttp://dashboards/cell?cell=c1\n\nstuck")
    assert body(group).endswith("\n\nand 3 more")
    (resolved,) = grouped([over], BEGAN + minutes(2))
    assert title(resolved) == "RESOLVED: StuckInPlain on host-of-engine-a"
    assert body(resolved).splitlines()[1] == "from 2026-11-01 12:00:00 UTC, until 2026-11-01 12:01:00 UTC"


def test_messages_carry_the_finding_and_what_is_not_known() -> None:
    said = {"summary": "stuck", "since": "an hour ago", "finding": "inflated: 310 tokens/s lost", "no_data": "silent"}
    (group,) = grouped([replace(alert(), annotations=said)], BEGAN)
    assert body(group).splitlines()[:4] == ["stuck", "silent", "since an hour ago", "inflated: 310 tokens/s lost"]
    (group,) = grouped([replace(alert(), annotations={"summary": "last: stuck", "clear": "it is clear now"})], BEGAN)
    assert body(group).splitlines()[:3] == ["last: stuck", "it is clear now", "since 2026-11-01 12:00:00 UTC"]
    (group,) = grouped([replace(alert(), annotations={"summary": "late", "description": "by 3 s"})], BEGAN)
    assert body(group).splitlines()[:3] == ["late", "since 2026-11-01 12:00:00 UTC", "by 3 s"]


def test_fingerprints_are_of_names_and_values_in_any_order() -> None:
    assert fingerprint({"a": "1", "b": "2"}) == fingerprint({"b": "2", "a": "1"})
    assert len({fingerprint(labels) for labels in ({"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": ""}, {})}) == 5


def test_the_page_names_every_setting_of_delivery() -> None:
    page = (Path(__file__).parents[2] / "docs" / "alert-receivers.md").read_text()
    own = [name for name in Settings.model_fields if name.startswith("alert") and hasattr(DeliverySettings, name)]
    assert len(own) == 4
    assert [name for name in own if f"`TACHOGRAPH_{name.upper()}`" not in page] == []

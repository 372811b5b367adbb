"""Against Debian's real Alertmanager, configured as we ship it: what it tells a webhook of what we send it."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from queries.alerts.delivery.alertmanager import AlertmanagerReceiver
from queries.alerts.delivery.alertmanager_silences import AlertmanagerSilences
from queries.alerts.delivery.endpoint import endpoint
from queries.alerts.delivery.errors import ReceiverAwayError, ReceiverRefusedError
from queries.alerts.delivery.groups import fingerprint, grouped
from queries.alerts.delivery.silences import new_silence
from queries.alerts.delivery.webhook import payload
from queries.alerts.notifying import Alert
from tests.fixtures.alert_receivers import ReceivingServer, alert, minutes, receiving, wait_until
from tests.fixtures.alertmanagers import (
    SHIPPED,
    Alertmanager,
    found,
    needs_alertmanager,
    quick_config,
    running_alertmanager,
)

pytestmark = needs_alertmanager


@pytest.fixture
def pager() -> Iterator[ReceivingServer]:
    with receiving() as server:
        yield server


@pytest.fixture
def alertmanager(tmp_path: Path, pager: ReceivingServer) -> Iterator[Alertmanager]:
    with running_alertmanager(tmp_path, quick_config(pager.url)) as running:
        yield running


@pytest.fixture
def receiver(alertmanager: Alertmanager) -> AlertmanagerReceiver:
    return AlertmanagerReceiver(endpoint(alertmanager.url))


def firing(name: str = "StuckInPlain", engine: str = "engine-a", **labels: str) -> Alert:
    """One that began a minute ago."""
    return alert(name, engine, since=datetime.now(UTC) - minutes(1), **labels)


def over(one: Alert) -> Alert:
    return Alert(one.labels, one.annotations, one.starts_at, datetime.now(UTC), one.generator_url)


def told(bodies: list[Any]) -> list[tuple[str, list[str]]]:
    """Of each message its status and its alerts' names."""
    return [(body["status"], sorted(one["labels"]["alertname"] for one in body["alerts"])) for body in bodies]


def test_the_shipped_configuration_is_valid() -> None:
    checked = subprocess.run(
        [str(found("amtool")), "check-config", SHIPPED], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "1 inhibit rules" in checked.stdout


def test_what_fires_is_told_once_and_its_end_too(
    pager: ReceivingServer, receiver: AlertmanagerReceiver, alertmanager: Alertmanager
) -> None:
    stuck = firing()
    for _ in range(3):
        receiver.send([stuck])
    first = pager.wait_for("/pager", lambda bodies: len(bodies) == 1)[0]
    (kept,) = alertmanager.alerts()
    assert kept["fingerprint"] == fingerprint(stuck.labels)
    assert kept["annotations"] == stuck.annotations
    assert kept["generatorURL"] == stuck.generator_url
    receiver.send([over(stuck)])
    pager.wait_for(
        "/pager", lambda bodies: told(bodies) == [("firing", ["StuckInPlain"]), ("resolved", ["StuckInPlain"])]
    )
    assert first["alerts"][0]["labels"] == stuck.labels


def test_our_webhook_says_what_alertmanagers_says(pager: ReceivingServer, receiver: AlertmanagerReceiver) -> None:
    sent = [firing(cell="c1"), firing(cell="c2")]
    receiver.send(sent)
    theirs = pager.wait_for("/pager", lambda bodies: any(len(body["alerts"]) == 2 for body in bodies))[-1]
    (group,) = grouped(sent, datetime.now(UTC))
    ours = payload(group, theirs["externalURL"])
    assert ours.keys() == theirs.keys()
    decided = ("receiver", "groupKey", "groupLabels", "alerts")
    assert {name: ours[name] for name in ours if name not in decided} == {
        name: theirs[name] for name in theirs if name not in decided
    }
    by_fingerprint = {one["fingerprint"]: one for one in theirs["alerts"]}
    assert {one["fingerprint"]: one for one in ours["alerts"]} == by_fingerprint


def test_alerts_of_one_engine_come_together(pager: ReceivingServer, receiver: AlertmanagerReceiver) -> None:
    receiver.send([firing(), firing("HostBound"), firing("HostBound", "engine-b")])
    bodies = pager.wait_for("/pager", lambda bodies: len(bodies) == 2)
    assert sorted(told(bodies)) == [("firing", ["HostBound"]), ("firing", ["HostBound", "StuckInPlain"])]


def test_inflation_inhibits_stuck_on_the_same_engine_only(
    pager: ReceivingServer, receiver: AlertmanagerReceiver, alertmanager: Alertmanager
) -> None:
    receiver.send([firing("EstimateInflation"), firing("EstimateInflation", "engine-c")])
    pager.wait_for("/pager", lambda bodies: len(bodies) == 2)
    receiver.send([firing("EstimateInflation"), firing(), firing(engine="engine-b")])
    bodies = pager.wait_for("/pager", lambda bodies: len(bodies) == 3)
    assert told(bodies[2:]) == [("firing", ["StuckInPlain"])]
    assert bodies[2]["groupLabels"] == {"service_instance_id": "engine-b"}
    states = {
        (one["labels"]["alertname"], one["labels"]["service_instance_id"]): one["status"]
        for one in alertmanager.alerts()
    }
    assert states["StuckInPlain", "engine-a"]["inhibitedBy"] == [fingerprint(firing("EstimateInflation").labels)]
    assert states["StuckInPlain", "engine-b"]["state"] == "active"


def test_severity_finds_its_receiver(pager: ReceivingServer, receiver: AlertmanagerReceiver) -> None:
    receiver.send([firing("ClockSkew", severity="warning")])
    assert told(pager.wait_for("/chat", bool)) == [("firing", ["ClockSkew"])]
    assert pager.received("/pager") == []


def test_a_silence_silences_and_its_end_tells(
    pager: ReceivingServer, receiver: AlertmanagerReceiver, alertmanager: Alertmanager
) -> None:
    silences = AlertmanagerSilences([endpoint("http://127.0.0.1:1"), endpoint(alertmanager.url)])
    made = silences.create(new_silence(["host_name=~host-of-.*-a"], "1h", "known", "me"))
    receiver.send([firing(), firing(engine="engine-b")])
    bodies = pager.wait_for("/pager", bool)
    (listed,) = silences.all()
    assert (listed.id, listed.comment, str(listed.matchers[0])) == (made, "known", "host_name=~host-of-.*-a")
    assert bodies[0]["groupLabels"] == {"service_instance_id": "engine-b"}
    silences.expire(made)
    bodies = pager.wait_for("/pager", lambda bodies: len(bodies) == 2)
    assert bodies[1]["groupLabels"] == {"service_instance_id": "engine-a"}
    with pytest.raises(ReceiverRefusedError, match=r"answers 422 .*must be of type uuid"):
        silences.expire("no-such-id")


def test_an_alertmanager_that_was_restarted_has_its_alerts_again_and_tells_none_twice(
    pager: ReceivingServer, receiver: AlertmanagerReceiver, alertmanager: Alertmanager
) -> None:
    stuck = firing()
    receiver.send([stuck])
    pager.wait_for("/pager", lambda bodies: len(bodies) == 1)
    alertmanager.wait_for_next_round()
    alertmanager.stop()
    with pytest.raises(ReceiverAwayError, match=f"^{alertmanager.url} does not answer"):
        receiver.send([stuck])
    alertmanager.start()
    assert alertmanager.alerts() == []
    receiver.send([stuck])
    wait_until(alertmanager.alerts, "the alert came again")
    receiver.send([stuck, firing(engine="engine-b")])
    # That another group is told says that this one's turn came, too.
    bodies = pager.wait_for("/pager", lambda bodies: len(bodies) == 2)
    assert bodies[1]["groupLabels"] == {"service_instance_id": "engine-b"}


def test_an_evaluator_that_was_restarted_is_no_news(pager: ReceivingServer, alertmanager: Alertmanager) -> None:
    stuck = firing()
    AlertmanagerReceiver(endpoint(alertmanager.url)).send([stuck])
    pager.wait_for("/pager", lambda bodies: len(bodies) == 1)
    AlertmanagerReceiver(endpoint(alertmanager.url)).send([stuck, firing(engine="engine-b")])
    bodies = pager.wait_for("/pager", lambda bodies: len(bodies) == 2)
    assert bodies[1]["groupLabels"] == {"service_instance_id": "engine-b"}


def test_what_nobody_sends_any_more_is_resolved(tmp_path: Path, pager: ReceivingServer) -> None:
    with running_alertmanager(tmp_path, quick_config(pager.url, resolve_timeout="1s")) as running:
        AlertmanagerReceiver(endpoint(running.url)).send([firing()])
        pager.wait_for("/pager", lambda bodies: [status for status, _ in told(bodies)] == ["firing", "resolved"])


def test_more_alerts_than_one_request_takes_all_arrive(
    receiver: AlertmanagerReceiver, alertmanager: Alertmanager
) -> None:
    sent = [firing(cell=f"c{index}") for index in range(600)]
    receiver.send(sent)
    assert {one["fingerprint"] for one in alertmanager.alerts()} == {fingerprint(one.labels) for one in sent}


def test_what_alertmanager_refuses_is_said_and_not_tried_again(receiver: AlertmanagerReceiver) -> None:
    ended_before = Alert({"alertname": "x"}, {}, datetime.now(UTC), datetime.now(UTC) - timedelta(days=1), "")
    with pytest.raises(ReceiverRefusedError, match=r"answers 400 .*start time must be before end time"):
        receiver.send([ended_before])

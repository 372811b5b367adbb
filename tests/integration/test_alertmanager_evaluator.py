"""The evaluator with its real receivers: the shipped rules to the real Alertmanager and to a webhook, over restarts."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from queries.alerts.clocks import SystemClock
from queries.alerts.delivery.receivers import receivers_of
from queries.alerts.evaluator import Evaluator
from queries.alerts.handing_over import Handing
from queries.alerts.loading import load_rules
from queries.alerts.memory import Memory
from queries.alerts.rule import Rule
from tachograph import Settings
from tests.fixtures.alert_receivers import ReceivingServer, receiving, wait_until
from tests.fixtures.alertmanagers import Alertmanager, needs_alertmanager, quick_config, running_alertmanager

pytestmark = needs_alertmanager


class Told:
    """A store that answers the rule StuckInPlain as it is told to."""

    def __init__(self, plain_fraction: float) -> None:
        self.plain_fraction = plain_fraction
        self.engines = ["engine-a"]
        self.replacements: dict[str, str] = {}

    def store_time(self) -> datetime:
        return datetime.now(UTC)

    def replaced(self, at: datetime) -> dict[str, str]:  # noqa: ARG002
        return self.replacements

    def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> list[dict[str, Any]]:
        assert (rule.alert, is_now) == ("StuckInPlain", True)
        shared = {
            "engine_package": "1.2.3",
            "scheduler_cost_model": "exposed_mean",
            "stuck_since": at - timedelta(seconds=60),
            "plain_fraction": self.plain_fraction,
            "plain_fraction_of_two": self.plain_fraction,
            "plain_fraction_max": self.plain_fraction,
            "cost": "it costs 500 tokens/s",
            "cells_judged": 3,
            "tokens_per_s": 2000.0,
            "cell": "c1",
        }
        return [shared | {"service_instance_id": engine, "host_name": f"host-of-{engine}"} for engine in self.engines]


def settings_of(directory: Path, alertmanager: Alertmanager, hook: ReceivingServer) -> Settings:
    return Settings(
        data_dir=directory, alertmanager_urls=alertmanager.url, alert_webhooks=SecretStr(f"{hook.url}/hook")
    )


@contextmanager
def evaluating(settings: Settings, source: Told) -> Iterator[Evaluator]:
    """One run of the evaluator, with what it remembers of the one before."""
    memory = Memory(settings.data_dir / "alerts")
    handing = [Handing(receiver) for receiver in receivers_of(settings)]
    # Of its two minutes and more nobody waits here; the fake clock of the evaluator's own tests does.
    rules = [load_rules().named("StuckInPlain").model_copy(update={"keep_firing_for": 0.0})]
    try:
        yield Evaluator(rules, source, memory, SystemClock(), settings.dashboards_url, handing)
    finally:
        for one in handing:
            one.stop()
        memory.close()


def told(bodies: Sequence[Any]) -> list[tuple[str, str]]:
    return [(body["status"], body["groupLabels"]["service_instance_id"]) for body in bodies]


def test_over_restarts_of_the_evaluator_each_beginning_and_each_end_is_told_once(tmp_path: Path) -> None:
    source = Told(0.5)
    with receiving() as hook, running_alertmanager(tmp_path / "alertmanager", quick_config(hook.url)) as alertmanager:
        settings = settings_of(tmp_path, alertmanager, hook)
        with evaluating(settings, source) as evaluator:
            evaluator.evaluate()
            (first,) = hook.wait_for("/hook", bool)
            (paged,) = hook.wait_for("/pager", bool)
        with evaluating(settings, source) as evaluator:
            source.engines.append("engine-b")
            evaluator.evaluate()
            hook.wait_for("/hook", lambda bodies: told(bodies) == [("firing", "engine-a"), ("firing", "engine-b")])
            hook.wait_for("/pager", lambda bodies: told(bodies) == [("firing", "engine-a"), ("firing", "engine-b")])
        source.plain_fraction = 0.1
        with evaluating(settings, source) as evaluator:
            evaluator.evaluate()
            hook.wait_for("/hook", lambda bodies: len(bodies) == 4)
            pages = hook.wait_for("/pager", lambda bodies: len(bodies) == 4)
        assert sorted(told(pages[2:])) == [("resolved", "engine-a"), ("resolved", "engine-b")]
        assert sorted(told(hook.received("/hook")[2:])) == [("resolved", "engine-a"), ("resolved", "engine-b")]
    ours, theirs = first["alerts"][0], paged["alerts"][0]
    assert ours == theirs
    assert ours["annotations"]["summary"].startswith("host-of-engine-a (engine-a) sits in plain decode: 50%")


def test_a_webhook_that_hangs_delays_no_page_and_no_evaluation(tmp_path: Path) -> None:
    source = Told(0.5)
    with receiving() as hook, running_alertmanager(tmp_path / "alertmanager", quick_config(hook.url)) as alertmanager:
        hook.held["/hook"] = threading.Event()
        with evaluating(settings_of(tmp_path, alertmanager, hook), source) as evaluator:
            for _ in range(3):
                evaluator.evaluate()
            wait_until(alertmanager.alerts, "Alertmanager has the alert")
            hook.wait_for("/pager", bool)
            assert hook.received("/hook") == []
            hook.held["/hook"].set()
            assert told(hook.wait_for("/hook", bool)) == [("firing", "engine-a")]

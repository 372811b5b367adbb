"""`tachograph alerts run`: evaluate the rules until told to stop."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import structlog

from queries.alerts.notifying import Receiver
from queries.commands.alerts.settings import AlertSettings, RunSettings, state_directory

if TYPE_CHECKING:
    from queries.alerts.evaluator import Evaluator


def run(settings: RunSettings) -> None:
    """Evaluate the rules, tell the receivers that the settings name, and keep the history, until Ctrl-C.

    Exit codes: 0 told to stop; 1 another evaluator runs on this data directory; 2 it cannot be written, or another setting is wrong.
    """
    from queries.alerts.delivery.receivers import receivers_of  # noqa: PLC0415 (slow to load)
    from queries.alerts.evaluator import run_every  # noqa: PLC0415

    with stop_signals() as stopping, ExitStack() as running:
        evaluator = opened(settings, running, receivers_of(settings), stopping)
        run_every(evaluator, settings.alert_interval_s)


def opened(
    settings: AlertSettings, running: ExitStack, receivers: Sequence[Receiver], stopping: threading.Event
) -> "Evaluator":
    """An evaluator with everything about it, which ends with `running`."""
    from queries.alerts.clocks import SystemClock  # noqa: PLC0415 (as above)
    from queries.alerts.evaluator import Evaluator  # noqa: PLC0415
    from queries.alerts.finding import Findings, telling  # noqa: PLC0415
    from queries.alerts.handing_over import Handing  # noqa: PLC0415
    from queries.alerts.history import HistorySender, storing_at  # noqa: PLC0415
    from queries.alerts.loading import load_rules  # noqa: PLC0415
    from queries.alerts.memory import Memory  # noqa: PLC0415
    from queries.alerts.sources import StoredSource  # noqa: PLC0415

    log = structlog.get_logger()
    rules = load_rules(settings.alert_rules, settings.alert_interval_s)
    for refused in rules.refused:
        log.error("a rule is refused", reason=str(refused))
    for warning in rules.warnings:
        log.warning("a rule is odd", reason=warning)
    memory = Memory(state_directory(settings))
    running.callback(memory.close)
    history = HistorySender(memory, storing_at(settings.rows_url, settings.clickhouse_url))
    running.callback(history.stop)
    handing = [Handing(receiver) for receiver in receivers]
    for one in handing:
        running.callback(one.stop)
    log.info(
        "evaluating", rules=len(rules.rules), every_s=settings.alert_interval_s, receivers=[one.name for one in handing]
    )
    return Evaluator(
        rules.rules,
        StoredSource(settings.clickhouse_url, settings.rows_url),
        memory,
        SystemClock(),
        settings.dashboards_url,
        handing,
        Findings(telling(settings.clickhouse_url)),
        on_change=history.wake,
        stopping=stopping,
    )


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C and by being told to end."""
    stopping = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

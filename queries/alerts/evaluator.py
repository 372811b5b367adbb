"""The evaluator: asks every rule's question at each interval, moves the book, and tells receivers and history."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Any, Final

import structlog

from queries.alerts.book import ENGINE, NOBODY, Change, Entry, Identity, abandoned, look
from queries.alerts.bounded import Call, Calls, TooSlowError
from queries.alerts.clocks import Clock
from queries.alerts.errors import AlertStateError
from queries.alerts.finding import Findings
from queries.alerts.handing_over import Handing
from queries.alerts.history import row_of
from queries.alerts.memory import Memory
from queries.alerts.notifying import Alert
from queries.alerts.rule import Rule
from queries.alerts.sources import Source
from queries.client import first_line
from queries.errors import QueriesError
from queries.runner import Rows

ANSWER_S: Final = 10.0
"""How long one evaluation waits for all answers together. What comes later is not waited for, and not asked twice."""
UNKEPT_ROWS_MAX: Final = 10_000
"""Rows of history that wait in memory for a disk that is full; beyond, the oldest are dropped and counted."""
STOP_CHECK_S: Final = 0.2
"""How soon an evaluation under way sees that it is told to stop."""


class StoppedError(Exception):
    """Told to stop in the middle of an evaluation: it is as if it had not begun."""


@dataclass
class Evaluator:
    """One evaluator. `evaluate` is called by one thread."""

    rules: Sequence[Rule]
    source: Source
    memory: Memory
    clock: Clock
    dashboards_url: str = ""
    receivers: Sequence[Handing] = ()
    findings: Findings | None = None
    answer_s: float = ANSWER_S
    on_change: Callable[[], object] | None = None
    """Called once changes are remembered."""
    stopping: Event = field(default_factory=Event)
    """Set by whoever ends it."""
    counts: Counter[str] = field(default_factory=Counter)
    """Evaluations done, skipped and failed, series left out: since it began."""

    def __post_init__(self) -> None:
        self._entries = self.memory.entries()
        self._calls = Calls()
        self._looked_at: dict[str, float] = {}
        self._seen_at = self.clock.monotonic()
        self._failing: dict[str, str] = {}
        self._parting: tuple[Alert, ...] = ()
        self._rows: list[dict[str, Any]] = []
        self._forgets = False

    @property
    def entries(self) -> Mapping[Identity, Entry]:
        """Every alert that is not inactive."""
        return self._entries

    def evaluate(self) -> tuple[Change, ...]:
        """Look at every rule that is due, once. Never raises for what a rule, a store, a receiver or a full disk does.

        Raises:
            StoppedError: it was told to stop before the answers were there.
        """
        due = [rule for rule in self.rules if self._is_due(rule)]
        answers, replaced = self._answers([rule for rule in due if rule.watches != "evaluator"])
        changes = list(self._give_up_ruleless())
        for rule in due:
            rows = [self._own_row()] if rule.watches == "evaluator" else answers.get(rule.alert)
            changes += self._look(rule, rows, replaced)
        self._remember(changes, self.findings.add_to(self._entries) if self.findings else frozenset())
        self._tell()
        return tuple(changes)

    # ---- asking

    def _is_due(self, rule: Rule) -> bool:
        last = self._looked_at.get(rule.alert)
        # A tenth early counts: a timer is never exact.
        return last is None or self.clock.monotonic() - last >= 0.9 * rule.every

    def _answers(self, rules: Sequence[Rule]) -> tuple[dict[str, Rows], Mapping[str, str]]:
        """The rows of each rule that answered in time, and which engines were replaced. Asked all at once, waited for
        together."""
        # Of real time, whatever the clock says: threads are waited for.
        deadline = time.monotonic() + self.answer_s
        at, trouble = self._store_time(deadline)
        calls: dict[str, Call[Rows] | None] = {}
        for rule in rules:
            if at or rule.watches:
                calls[rule.alert] = self._start(rule, at or self.clock.now())
        replacing = (
            self._calls.start("replaced engines", lambda: self.source.replaced(at))
            if at and any(ENGINE in rule.identity for rule in rules)
            else None
        )
        failing = {rule.alert: trouble for rule in rules if rule.alert not in calls}
        answers: dict[str, Rows] = {}
        for name, call in calls.items():
            try:
                answers[name] = self._waited_for(call, deadline)
            except (QueriesError, TooSlowError) as wrong:
                failing[name] = str(wrong)
            except StoppedError:
                raise
            except Exception as defect:
                failing[name] = f"{type(defect).__name__}: {first_line(defect)}"
        self._note(failing, {rule.alert for rule in rules})
        return answers, self._replaced(replacing, deadline)

    def _replaced(self, call: Call[Mapping[str, str]] | None, deadline: float) -> Mapping[str, str]:
        """Which engines were replaced; where it is not known, none."""
        if call is None:
            return NOBODY
        try:
            return dict(self._waited_for(call, deadline))
        except StoppedError:
            raise
        except Exception as wrong:
            self.counts["replacements_unknown"] += 1
            structlog.get_logger().debug("which engines were replaced is not known", error=first_line(wrong)[:400])
            return NOBODY

    def _start(self, rule: Rule, at: datetime) -> Call[Rows] | None:
        call = self._calls.start(rule.alert, lambda: self.source.rows(rule, at, is_now=True))
        if call is None:
            self.counts["evaluations_skipped"] += 1
        return call

    def _store_time(self, deadline: float) -> tuple[datetime | None, str]:
        call = self._calls.start("store time", self.source.store_time)
        try:
            return self._waited_for(call, deadline), ""
        except StoppedError:
            raise
        except Exception as wrong:
            return None, str(wrong) or type(wrong).__name__

    def _waited_for(self, call: "Call[Any] | None", deadline: float) -> Any:
        if call is None:
            raise TooSlowError("its last question is not answered yet")
        while not call.is_done and (left_s := deadline - time.monotonic()) > 0 and not self.stopping.is_set():
            self._wait_a_little(call, left_s)
        if self.stopping.is_set():
            raise StoppedError
        if not call.is_done:
            raise TooSlowError(f"no answer within {self.answer_s:g} s")
        return call.result(0.0)

    def _wait_a_little(self, call: "Call[Any]", left_s: float) -> None:
        with contextlib.suppress(Exception):  # It is raised when the result is asked for.
            call.result(min(left_s, STOP_CHECK_S))

    def _note(self, failing: Mapping[str, str], asked: set[str]) -> None:
        """Say once of each rule that it fails, and that it does no longer; of those that fail alike, in one line."""
        log = structlog.get_logger()
        self.counts["evaluations_failed"] += len(failing)
        began: dict[str, list[str]] = {}
        for name in sorted(failing.keys() - self._failing.keys()):
            began.setdefault(failing[name], []).append(name)
        for why, names in began.items():
            log.warning("rules cannot be evaluated", rules=names, error=why[:400])
        if again := sorted(asked & self._failing.keys() - failing.keys()):
            log.info("rules are evaluated again", rules=again)
        kept = {name: why for name, why in self._failing.items() if name not in asked}
        self._failing = {**kept, **failing}
        if not self._failing:
            self._seen_at = self.clock.monotonic()

    def _own_row(self) -> dict[str, Any]:
        return {
            "blind_s": self.clock.monotonic() - self._seen_at if self._failing else 0.0,
            "rules_failing": len(self._failing),
            "evaluations_skipped": self.counts["evaluations_skipped"],
            "failing": "; ".join(f"{name}: {why[:200]}" for name, why in sorted(self._failing.items())[:3]),
        }

    # ---- moving

    def _look(self, rule: Rule, rows: Rows | None, replaced: Mapping[str, str]) -> tuple[Change, ...]:
        now = self.clock.monotonic()
        mine = {identity: entry for identity, entry in self._entries.items() if entry.rule == rule.alert}
        elapsed_s = now - self._looked_at.get(rule.alert, now)
        looked = look(rule, mine, rows, elapsed_s=elapsed_s, now=self.clock.now(), replaced=replaced)
        self._looked_at[rule.alert] = now
        for identity in mine:
            del self._entries[identity]
        self._entries.update(looked.entries)
        self.counts["series_left_out"] += looked.left_out
        return looked.changes

    def _give_up_ruleless(self) -> Iterable[Change]:
        """Alerts of rules that were taken away while the evaluator was down."""
        names = {rule.alert for rule in self.rules}
        for identity, entry in list(self._entries.items()):
            if entry.rule not in names:
                change = abandoned(entry, self.clock.now())
                del self._entries[identity]
                if change and change.entry.standing.ended:
                    self._parting += (change.entry.alert(self.dashboards_url),)
                if change:
                    yield change

    # ---- telling

    def _remember(self, changes: Sequence[Change], found: frozenset[Identity]) -> None:
        now = self.clock.now()
        self.counts["evaluations"] += 1
        log = structlog.get_logger()
        for change in changes:
            entry = change.entry
            log.info("alert", state=str(entry.standing.state), before=str(change.before), **entry.labels)
        # With its finding, where it has got one meanwhile.
        latest = [Change(self._entries.get(one.entry.identity, one.entry), one.before) for one in changes]
        # A finding that came late is worth a row of its own.
        late = found - {change.entry.identity for change in changes}
        latest += [Change(self._entries[one], self._entries[one].standing.state) for one in sorted(late)]
        counters = {**self.counts, "evaluated_at": now.timestamp()} | self._receiver_counts()
        self._rows += [row_of(change, now) for change in latest]
        if self._kept(counters) and latest and self.on_change:
            self.on_change()

    def _kept(self, counters: Mapping[str, float]) -> bool:
        """Remember it all; what a full disk does not take is tried again with the next evaluation."""
        log = structlog.get_logger()
        try:
            self.memory.keep(self._entries.values(), self._rows, counters)
        except AlertStateError as wrong:
            if not self._forgets:
                log.warning("alerts go on, but a restart would forget them", error=str(wrong)[:400])
            self._forgets = True
            self.counts["history_rows_dropped_unkept"] += max(0, len(self._rows) - UNKEPT_ROWS_MAX)
            self._rows = self._rows[-UNKEPT_ROWS_MAX:]
            return False
        if self._forgets:
            log.info("alerts are remembered again")
        self._forgets, self._rows = False, []
        return True

    def _receiver_counts(self) -> dict[str, float]:
        counts: Counter[str] = Counter()
        for receiver in self.receivers:
            counts += Counter(
                alerts_sent=receiver.sent, delivery_attempts_failed=receiver.failed, alerts_dropped=receiver.dropped
            )
        return dict(counts)

    def _tell(self) -> None:
        alerts = (*self._parting, *self.alerts())
        self._parting = ()
        if alerts:
            for receiver in self.receivers:
                receiver.put(alerts)

    def alerts(self) -> tuple[Alert, ...]:
        """What receivers are told: everything that fires, and what ended lately."""
        return tuple(
            entry.alert(self.dashboards_url)
            for entry in self._entries.values()
            if entry.standing.fires or entry.standing.ended
        )


def run_every(evaluator: Evaluator, interval_s: float) -> None:
    """Evaluate at each interval until told to stop. What one evaluation overran is left out and counted, never made up."""
    clock, stopping = evaluator.clock, evaluator.stopping
    due = clock.monotonic()
    while not stopping.is_set():
        try:
            evaluator.evaluate()
        except StoppedError:
            return
        due += interval_s
        late = clock.monotonic() - due
        if late > 0:
            missed = int(late // interval_s) + 1
            evaluator.counts["evaluations_skipped"] += missed
            due += missed * interval_s
        stopping.wait(max(0.0, due - clock.monotonic()))

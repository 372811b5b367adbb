"""What rules would have done: evaluated on stored data at past instants, one after another.

Data is taken as it had arrived by each instant, as far as the rollup tells: within the 30 s window in which a record
arrived late, it counts from its last arrival on.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from queries.alerts.book import Entry, Identity, identity_of, look
from queries.alerts.rule import Rule
from queries.alerts.sources import PastSource, Spans, SuspectingSource
from queries.alerts.states import State
from queries.errors import CallError
from queries.runner import Rows

STEPS_MAX: Final = 100_000
"""Evaluations of one rule."""
STEP_S: Final = 30.0
"""A cell."""
LOOKS: Final = 360
"""Evaluations of one rule, unless more are asked for."""


@dataclass(frozen=True)
class Episode:
    """One time that an alert would have fired."""

    alert: str
    identity: Identity
    began_at: datetime | None
    """When the trouble began, as the rule's `since` says at the time; None where it says nothing."""
    fired_at: datetime
    ended_at: datetime | None
    """None: it fires at the end of the time asked for."""
    ended: State
    """`firing`, `no_data`, `resolved` or `gone`: what it came to."""
    summary: str

    @property
    def seen_after_s(self) -> float | None:
        """From the beginning of the trouble until someone could have seen the alert, in s."""
        return (self.fired_at - self.began_at).total_seconds() if self.began_at else None

    @property
    def lasted_s(self) -> float | None:
        return (self.ended_at - self.fired_at).total_seconds() if self.ended_at else None


class Plan(NamedTuple):
    """When to look at a rule."""

    step_s: float
    at: Sequence[datetime]
    suspects: Spans | None
    """When alone it may be worth it; None: at any time."""

    def is_worth_it(self, moment: datetime) -> bool:
        return self.suspects is None or any(since <= moment <= until for since, until in self.suspects)


def planned(rule: Rule, source: SuspectingSource, since: datetime, until: datetime, wanted_s: float | None) -> Plan:
    """Looks as far apart as wanted, else every `STEP_S`, or so seldom that about `LOOKS` of them are worth it. Never more
    often than the rule is evaluated.

    Raises:
        CallError: no time, more than `STEPS_MAX` evaluations, or the rule watches something that is not stored.
        QueriesError: a query failed.
    """
    if rule.watches:
        raise CallError(f"{rule.alert} watches the {rule.watches}, whose past is not stored")
    suspects = source.suspects(rule, since, until)
    span_s = (until - since).total_seconds() if suspects is None else _covered_s(suspects)
    step_s = max(rule.every, wanted_s or max(STEP_S, math.ceil(span_s / LOOKS / 10) * 10.0))
    return Plan(step_s, instants(since, until, step_s), suspects)


def _covered_s(spans: Spans) -> float:
    """How long they are together; what several of them cover counts once."""
    covered_s, reached = 0.0, datetime.min.replace(tzinfo=UTC)
    for since, until in sorted(spans):
        covered_s += max(0.0, (until - max(since, reached)).total_seconds())
        reached = max(reached, until)
    return covered_s


def instants(since: datetime, until: datetime, step_s: float) -> Sequence[datetime]:
    """When to evaluate.

    Raises:
        CallError: no time, or more than `STEPS_MAX` evaluations.
    """
    count = int((until - since).total_seconds() // step_s) + 1
    if not 1 <= count <= STEPS_MAX:
        raise CallError(f"{max(count, 0)} evaluations: ask for 1 to {STEPS_MAX}, by --since, --until and --step")
    return [since + timedelta(seconds=n * step_s) for n in range(count)]


def backtest(
    rule: Rule,
    source: PastSource,
    plan: Plan,
    watching: Callable[[Sequence[datetime]], Iterable[datetime]] = iter,
) -> tuple[Episode, ...]:
    """Every time that a rule would have fired at these instants. As long as none of its alerts is under way, it is
    evaluated only where its `suspects` say that it may be worth it.

    Args:
        rule: A rule with a query; what a collector or evaluator was like is not stored.
        source: Where its rows come from.
        plan: When to look at it.
        watching: Passed the instants, for a progress bar.

    Raises:
        QueriesError: a query failed.
    """
    entries: dict[Identity, Entry] = {}
    open_episodes: dict[Identity, Episode] = {}
    episodes: list[Episode] = []
    looked_at = plan.at[0]
    for moment in watching(plan.at):
        under_way = any(not entry.standing.ended for entry in entries.values())
        if not (under_way or plan.is_worth_it(moment)):
            continue
        rows = source.rows(rule, moment, is_now=False)
        entries, changes, _ = look(rule, entries, rows, elapsed_s=(moment - looked_at).total_seconds(), now=moment)
        looked_at = moment
        for change in changes:
            entry, state = change.entry, change.entry.standing.state
            if state == State.FIRING and entry.identity not in open_episodes:
                open_episodes[entry.identity] = _begun(rule, entry, rows, moment)
            elif entry.standing.ended and entry.identity in open_episodes:
                episode = open_episodes.pop(entry.identity)
                episodes.append(replace(episode, ended_at=moment, ended=state))
    for identity, episode in open_episodes.items():
        episodes.append(replace(episode, ended=entries[identity].standing.state))
    return tuple(sorted(episodes, key=lambda episode: (episode.fired_at, episode.identity)))


def _begun(rule: Rule, entry: Entry, rows: Rows, moment: datetime) -> Episode:
    return Episode(
        rule.alert,
        entry.identity,
        _began_at(rule, entry, rows),
        moment,
        None,
        State.FIRING,
        entry.annotations["summary"],
    )


def _began_at(rule: Rule, entry: Entry, rows: Rows) -> datetime | None:
    for row in rows if rule.since else ():
        value = row.get(rule.since or "")
        if isinstance(value, datetime) and identity_of(rule, row) == entry.identity:
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return None

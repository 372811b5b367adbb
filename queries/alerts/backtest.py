"""What rules would have done: evaluated on stored data at past instants, one after another.

Data is taken as it had arrived by each instant, as far as the rollup tells: within the 30 s window in which a record
arrived late, it counts from its last arrival on.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from queries.alerts.book import Entry, Identity, identity_of, look
from queries.alerts.rule import Rule
from queries.alerts.sources import Source
from queries.alerts.states import State
from queries.errors import CallError
from queries.runner import Rows

STEPS_MAX: Final = 100_000
"""Evaluations of one rule."""


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
    source: Source,
    at: Iterable[datetime],
    step_s: float,
    watching: Callable[[Iterable[datetime]], Iterable[datetime]] = iter,
) -> tuple[Episode, ...]:
    """Every time that a rule would have fired at these instants.

    Args:
        rule: A rule with a query; what a collector or evaluator was like is not stored.
        source: Where its rows come from.
        at: The instants, `step_s` apart.
        watching: Passed the instants, for a progress bar.

    Raises:
        CallError: the rule watches something that is not stored.
        QueriesError: a query failed.
    """
    if rule.watches:
        raise CallError(f"{rule.alert} watches the {rule.watches}, whose past is not stored")
    entries: dict[Identity, Entry] = {}
    open_episodes: dict[Identity, Episode] = {}
    episodes: list[Episode] = []
    for moment in watching(at):
        rows = source.rows(rule, moment, is_now=False)
        entries, changes, _ = look(rule, entries, rows, elapsed_s=step_s, now=moment)
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

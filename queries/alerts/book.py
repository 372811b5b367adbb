"""The book of alerts: where each stands, and what one look at a rule changes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from queries.alerts.conditions import judge
from queries.alerts.notifying import Alert
from queries.alerts.rule import Rule
from queries.alerts.states import Seen, Standing, State, Timing, step
from queries.alerts.templates import filled, filled_link, shown

Identity = tuple[tuple[str, str], ...]
"""The labels of an alert, sorted."""
REPLACED_BY: Final = "replaced_by"
"""The annotation of an alert whose engine was replaced: the engine that did."""
ENGINE: Final = "service_instance_id"
"""The label of an alert about one engine."""
SERIES_MAX: Final = 10_000
"""Alerts of one rule that are kept at a time; further ones are counted and left out."""
NOBODY: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Entry:
    """One alert that is not inactive."""

    rule: str
    identity: Identity
    standing: Standing
    starts_at: datetime | None = None
    """When it began to fire, by the calendar."""
    ends_at: datetime | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    """As of the last row."""
    measured: Mapping[str, float] = field(default_factory=dict)
    """The numbers of the last row."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Engine, host and cell of the last row, and since when."""
    link: str = ""

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.identity)

    @property
    def summary(self) -> str:
        """What it says; where it fires on although it is clear, nothing is known of it, or it is given up, that it said so
        last."""
        summary = self.annotations.get("summary", "")
        if self.standing.state == State.GONE:
            return f"{self._why_gone}, last: {summary}"
        is_of_now = self.standing.clear_s is None and self.standing.state != State.NO_DATA
        return summary if is_of_now else f"last: {summary}"

    @property
    def _why_gone(self) -> str:
        successor = self.annotations.get(REPLACED_BY)
        return f"replaced by {successor}" if successor else "given up"

    @property
    def said(self) -> dict[str, str]:
        """Its annotations, as receivers and the history are told of it in its state."""
        annotations = {**self.annotations, "summary": self.summary}
        if self.standing.state == State.NO_DATA:
            annotations["no_data"] = "nothing is known of it now; these are the last values"
        elif self.standing.clear_s is not None:
            annotations["clear"] = "it is clear now: it ends soon, unless it comes back"
        if self.standing.state == State.GONE:
            successor = self.annotations.get(REPLACED_BY)
            annotations["gone"] = (
                f"its engine was replaced by {successor}, whose alerts are its own"
                if successor
                else "it was not seen to recover: nothing was heard of it for so long that it is given up"
            )
        return annotations

    def alert(self, dashboards_url: str) -> Alert:
        """As receivers are told of it."""
        url = f"{dashboards_url.rstrip('/')}/{self.link.lstrip('/')}" if dashboards_url else ""
        return Alert(self.labels, self.said, self.starts_at or datetime.now(UTC), self.ends_at, url)


class Change(NamedTuple):
    """One alert that came into another state."""

    entry: Entry
    """As it is now."""
    before: State


class Looked(NamedTuple):
    """What a look at one rule came to."""

    entries: dict[Identity, Entry]
    """Every alert of the rule that is not inactive."""
    changes: tuple[Change, ...]
    left_out: int
    """Series beyond `SERIES_MAX`."""


def look(
    rule: Rule,
    entries: Mapping[Identity, Entry],
    rows: Sequence[Mapping[str, Any]] | None,
    *,
    elapsed_s: float,
    now: datetime,
    replaced: Mapping[str, str] = NOBODY,
) -> Looked:
    """Move every alert of a rule on by one look.

    Args:
        rule: The rule.
        entries: Its alerts as they were.
        rows: What its query answered; None where it did not.
        elapsed_s: Monotonic time since the look before; 0 for the first.
        now: The calendar, to be written down.
        replaced: Engines that were replaced, and by which: their alerts are given up at once.
    """
    by_identity = {} if rows is None else _first_of_each(rule, rows)
    moved: dict[Identity, Entry] = {}
    changes: list[Change] = []
    left_out = 0
    for identity in (*entries, *(one for one in by_identity if one not in entries)):
        before = entries.get(identity) or Entry(rule.alert, identity, Standing())
        successor = replaced.get(before.labels.get(ENGINE, ""), "")
        if successor:
            after = _replaced(before, successor, elapsed_s=elapsed_s, now=now, timing=rule.timing)
        else:
            after = _moved(rule, before, by_identity.get(identity), is_blind=rows is None, elapsed_s=elapsed_s, now=now)
        if after.standing.state != before.standing.state:
            changes.append(Change(after, before.standing.state))
        if after.standing.state == State.INACTIVE:
            continue
        if identity not in entries and len(moved) >= SERIES_MAX:
            left_out += 1
            changes = [change for change in changes if change.entry.identity != identity]
            continue
        moved[identity] = after
    return Looked(moved, tuple(changes), left_out)


def _first_of_each(rule: Rule, rows: Sequence[Mapping[str, Any]]) -> dict[Identity, Mapping[str, Any]]:
    """Of rows with one identity the first counts: queries put the worst first."""
    found: dict[Identity, Mapping[str, Any]] = {}
    for row in rows:
        found.setdefault(identity_of(rule, row), row)
    return found


def identity_of(rule: Rule, row: Mapping[str, Any]) -> Identity:
    """The labels of a row's alert."""
    labels = {name: shown(row[name]) for name in rule.identity if row.get(name) not in (None, "")}
    return tuple(sorted({**rule.labels, **labels, "alertname": rule.alert, "severity": rule.severity}.items()))


def _moved(
    rule: Rule, before: Entry, row: Mapping[str, Any] | None, *, is_blind: bool, elapsed_s: float, now: datetime
) -> Entry:
    if row is not None:
        seen = judge(rule.when, row)
    else:
        seen = Seen.CLEAR if rule.absent == "clear" and not is_blind else Seen.MISSING
    # An evaluator that sees nothing at all gives nobody up for it.
    missed_s = 0.0 if is_blind and not before.standing.ended else elapsed_s
    standing = step(before.standing, seen, missed_s, rule.timing)
    entry = replace(before, standing=standing)
    # What is told of it stays as it was when it was last in breach, or at least under way.
    # What ended stays told as it was at its end.
    is_on = standing.state != State.INACTIVE and not standing.ended
    if row is not None and seen in (Seen.BREACHED, Seen.WITHIN) and is_on:
        entry = _told(rule, entry, row)
        if before.standing.fires and "finding" in before.annotations:
            entry = with_finding(entry, before.annotations["finding"], before)
    if standing.state == State.RESOLVED and before.standing.state != State.RESOLVED:
        entry = _over(rule, entry, row)
    if standing.state == State.INACTIVE and before.standing.state in (State.PENDING, State.NO_DATA):
        entry = _never_fired(entry)
    return _dated(entry, before, now)


def _replaced(before: Entry, successor: str, *, elapsed_s: float, now: datetime, timing: Timing) -> Entry:
    """Whatever its rows still say: they are of what was."""
    entry = replace(before, standing=step(before.standing, Seen.REPLACED, elapsed_s, timing))
    if entry.standing.state == State.GONE and not before.standing.ended:
        entry = replace(entry, annotations={**entry.annotations, REPLACED_BY: successor})
    if entry.standing.state == State.INACTIVE and before.standing.state in (State.PENDING, State.NO_DATA):
        entry = _never_fired(entry)
    return _dated(entry, before, now)


def with_finding(entry: Entry, finding: str, found_of: Entry) -> Entry:
    """The alert with a finding: its cell and its link are those that the finding tells of, whatever it is about now."""
    cell = {"cell": found_of.about["cell"]} if "cell" in found_of.about else {}
    return replace(
        entry,
        annotations={**entry.annotations, "finding": finding},
        about={**entry.about, **cell},
        link=found_of.link,
    )


def _told(rule: Rule, entry: Entry, row: Mapping[str, Any]) -> Entry:
    annotations = {name: filled(text, row) for name, text in rule.annotations.items()}
    annotations |= {"runbook": rule.runbook.strip()}
    if rule.since and row.get(rule.since) is not None:
        annotations["since"] = shown(row[rule.since])
    about = {name: str(row[name]) for name in ("service_instance_id", "host_name") if row.get(name)}
    if rule.finding_of and row.get(rule.finding_of):
        about["cell"] = str(row[rule.finding_of])
    return replace(
        entry,
        annotations=annotations,
        measured=dict(_numbers(row)),
        about=about,
        link=filled_link(rule.link, row),
    )


def _over(rule: Rule, entry: Entry, row: Mapping[str, Any] | None) -> Entry:
    """What is true now, and not what was when it fired: that becomes the annotation `was`."""
    was = entry.annotations.get("summary", "")
    now = filled(rule.resolved, row if row is not None else entry.labels) if rule.resolved else f"over: {was}"
    others = {name: text for name, text in entry.annotations.items() if name != "description"}
    return replace(entry, annotations={**others, "summary": now, "was": was})


def _never_fired(entry: Entry) -> Entry:
    summary = f"did not come to fire: {entry.annotations.get('summary', '')}"
    return replace(entry, annotations={**entry.annotations, "summary": summary})


def _numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            yield name, float(value)


def _dated(entry: Entry, before: Entry, now: datetime) -> Entry:
    """With the instants at which it began to fire and ended."""
    state, was = entry.standing.state, before.standing.state
    if state == was:
        return entry
    if entry.standing.fires and not before.standing.fires:
        return replace(entry, starts_at=now, ends_at=None)
    if entry.standing.ended and not before.standing.ended:
        return replace(entry, ends_at=now)
    if state in (State.PENDING, State.INACTIVE):
        return replace(entry, starts_at=None, ends_at=None)
    return entry


def abandoned(entry: Entry, now: datetime) -> Change | None:
    """What becomes of an alert whose rule is there no longer: given up, if it fired."""
    if entry.standing.ended:
        return None
    state = State.GONE if entry.standing.fires else State.INACTIVE
    return Change(_dated(replace(entry, standing=Standing(state)), entry, now), entry.standing.state)

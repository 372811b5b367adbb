"""What people were told: kept on disk, so that a restart tells nobody anything again."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

from queries.alerts.delivery import kept
from queries.alerts.delivery.groups import Group, fingerprint
from queries.alerts.notifying import Alert

KEPT_FOR: Final = timedelta(days=5)
"""How long it is known that a group was told, if nothing is heard of it any more; as Alertmanager's default."""
GROUPS_MAX: Final = 10_000
"""Of more, those told longest ago are forgotten, and told again if they still fire."""


class Told(BaseModel):
    """What was told last of one group."""

    at: datetime
    firing: dict[str, datetime]
    """By fingerprint, each alert that was told as firing and not as resolved since, with its `starts_at`."""


class _File(BaseModel):
    groups: dict[str, Told] = Field(default_factory=dict)


class Notified:
    """What one receiver told, by group. Belongs to one thread.

    Args:
        file: Where it is kept. A damaged one counts as empty: rather told twice than never.
        repeat_interval: After how long what still fires is told again.
    """

    def __init__(self, file: Path, repeat_interval: timedelta) -> None:
        self._file = file
        self._repeat_interval = repeat_interval
        self._groups = (kept.read(file, _File) or _File()).groups

    def is_news(self, group: Group, now: datetime) -> bool:
        """Whether people do not know it yet, or shall hear it again."""
        told = self._told_of(group)
        if told is None:
            return bool(group.firing)
        if any(told.firing.get(fingerprint(alert.labels)) != alert.starts_at for alert in group.firing):
            return True
        if any(_was_told(alert, told) for alert in group.resolved):
            return True
        return bool(group.firing) and self._is_long_ago(told.at, now)

    def without_old_endings(self, group: Group) -> Group:
        """The group, of those that ended only the ones that people heard of and believe to be firing."""
        told = self._told_of(group)
        return Group(
            group.labels, group.firing, tuple(alert for alert in group.resolved if told and _was_told(alert, told))
        )

    def record(self, groups: Iterable[Group], now: datetime) -> None:
        """They were told; known from now on, even if it cannot be kept.

        Raises:
            NotKeptError: the file cannot be written, so that a restart would tell them again.
        """
        for group in groups:
            self._record(group, now)
        self._forget(now)
        kept.write(self._file, _File(groups=self._groups))

    def _record(self, group: Group, now: datetime) -> None:
        told = self._told_of(group)
        firing = dict(told.firing) if told else {}
        for alert in group.resolved:
            firing.pop(fingerprint(alert.labels), None)
        firing |= {fingerprint(alert.labels): alert.starts_at for alert in group.firing}
        self._groups.pop(group.key, None)
        self._leave_rule(group)
        if firing:
            self._groups[group.key] = Told(at=now, firing=firing)

    def _told_of(self, group: Group) -> Told | None:
        """What was told of a group, also where that was kept by its rule alone (see `Group.rule_key`)."""
        if told := self._groups.get(group.key):
            return told
        with_others = self._groups.get(group.rule_key)
        if with_others is None:
            return None
        own = _marks(group) & with_others.firing.keys()
        return Told(at=with_others.at, firing={mark: with_others.firing[mark] for mark in own}) if own else None

    def _leave_rule(self, group: Group) -> None:
        """What was kept by the rule alone is kept by the group from now on."""
        with_others = self._groups.get(group.rule_key)
        if with_others is None:
            return
        left = {mark: began for mark, began in with_others.firing.items() if mark not in _marks(group)}
        if left:
            self._groups[group.rule_key] = Told(at=with_others.at, firing=left)
        else:
            del self._groups[group.rule_key]

    def _is_long_ago(self, at: datetime, now: datetime) -> bool:
        """A clock that was set back by much must not keep us silent until it has caught up."""
        return abs(now - at) >= self._repeat_interval

    def _forget(self, now: datetime) -> None:
        recent = [(key, told) for key, told in self._groups.items() if now - told.at < KEPT_FOR]
        self._groups = dict(sorted(recent, key=lambda one: one[1].at)[-GROUPS_MAX:])


def _marks(group: Group) -> set[str]:
    return {fingerprint(alert.labels) for alert in group.alerts}


def _was_told(alert: Alert, told: Told) -> bool:
    return fingerprint(alert.labels) in told.firing

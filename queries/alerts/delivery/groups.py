"""Which alerts are told together, and what identifies one: its labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from queries.alerts.notifying import Alert

_RULE: Final = "alertname"
_ENGINE: Final = "service_instance_id"
_OF_NO_GROUP: Final = frozenset({"severity"})
"""It is the rule's, and tells none of its alerts apart."""

_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3


def fingerprint(labels: Mapping[str, str]) -> str:
    """The identity of a label set, as Prometheus and Alertmanager write it: FNV-1a over sorted names and values."""
    figure = _FNV_OFFSET
    for name in sorted(labels):
        for byte in b"%b\xff%b\xff" % (name.encode(), labels[name].encode()):
            figure = (figure ^ byte) * _FNV_PRIME % 2**64
    return f"{figure:016x}"


def is_over(alert: Alert, now: datetime) -> bool:
    """Whether it no longer fires."""
    return alert.ends_at is not None and alert.ends_at <= now


@dataclass(frozen=True)
class Group:
    """Alerts of one rule and engine, or of whatever else the rule tells apart, at one instant."""

    labels: Mapping[str, str]
    """Those that they share, by `shared_labels`."""
    firing: tuple[Alert, ...]
    """The longest first."""
    resolved: tuple[Alert, ...]

    @property
    def key(self) -> str:
        """As Alertmanager writes it for a route without matchers."""
        return _key(self.labels)

    @property
    def rule_key(self) -> str:
        """That of its rule alone, which was the key of every alert without an engine once: what was told is kept by it."""
        return _key({name: value for name, value in self.labels.items() if name == _RULE})

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """All, those that fire first."""
        return self.firing + self.resolved

    @property
    def status(self) -> str:
        """`firing` while any of them does, else `resolved`."""
        return "firing" if self.firing else "resolved"


def shared_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """By which an alert is told with others: its rule and engine; without an engine, all that its rule tells apart.

    So a host that joins, of a rule about hosts, has a message of its own, and does not repeat those of the others.
    """
    if labels.get(_ENGINE):
        return {name: labels[name] for name in (_RULE, _ENGINE) if labels.get(name)}
    return {name: value for name, value in labels.items() if value and name not in _OF_NO_GROUP}


def grouped(alerts: Iterable[Alert], now: datetime) -> list[Group]:
    """The groups of these alerts, in the order of their keys."""
    members: dict[tuple[tuple[str, str], ...], list[Alert]] = {}
    for alert in sorted(alerts, key=lambda alert: (alert.starts_at, fingerprint(alert.labels))):
        shared = tuple(sorted(shared_labels(alert.labels).items()))
        members.setdefault(shared, []).append(alert)
    groups = [
        Group(
            dict(shared),
            tuple(alert for alert in together if not is_over(alert, now)),
            tuple(alert for alert in together if is_over(alert, now)),
        )
        for shared, together in members.items()
    ]
    return sorted(groups, key=lambda group: group.key)


def _key(labels: Mapping[str, str]) -> str:
    inner = ", ".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return f"{{}}:{{{inner}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

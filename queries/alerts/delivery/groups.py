"""Which alerts are told together, and what identifies one: its labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from queries.alerts.notifying import Alert

GROUPED_BY: Final = ("alertname", "service_instance_id")
"""One message for each rule and engine. An alert of no engine has a group with the others of its rule."""

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
    """Alerts of one rule and engine, at one instant."""

    labels: Mapping[str, str]
    """Those of `GROUPED_BY` that they have."""
    firing: tuple[Alert, ...]
    """The longest first."""
    resolved: tuple[Alert, ...]

    @property
    def key(self) -> str:
        """As Alertmanager writes it for a route without matchers."""
        inner = ", ".join(f'{name}="{_escaped(value)}"' for name, value in sorted(self.labels.items()))
        return f"{{}}:{{{inner}}}"

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """All, those that fire first."""
        return self.firing + self.resolved

    @property
    def status(self) -> str:
        """`firing` while any of them does, else `resolved`."""
        return "firing" if self.firing else "resolved"


def grouped(alerts: Iterable[Alert], now: datetime) -> list[Group]:
    """The groups of these alerts, in the order of their keys."""
    members: dict[tuple[tuple[str, str], ...], list[Alert]] = {}
    for alert in sorted(alerts, key=lambda alert: (alert.starts_at, fingerprint(alert.labels))):
        shared = tuple((name, alert.labels[name]) for name in GROUPED_BY if alert.labels.get(name))
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


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""What a message to people says of a group: what, where, since when, what it costs, where to look."""

from datetime import UTC, datetime
from typing import Final

from queries.alerts.delivery.groups import Group
from queries.alerts.notifying import Alert

ALERTS_MAX: Final = 5
"""Alerts written out; the others are counted."""
_WHERE: Final = ("host_name", "service_instance_id", "engine_name")


def title(group: Group) -> str:
    """One line: `FIRING: StuckInPlain on gpu-17`."""
    first = group.alerts[0]
    where = next((first.labels[name] for name in _WHERE if first.labels.get(name)), "")
    count = f" ({len(group.firing)} alerts)" if len(group.firing) > 1 else ""
    return f"{group.status.upper()}: {first.labels.get('alertname', 'alert')}{f' on {where}' if where else ''}{count}"


def body(group: Group) -> str:
    """A few lines for each of the first alerts, as plain text."""
    alerts = group.alerts
    told = [_told(alert, is_firing=index < len(group.firing)) for index, alert in enumerate(alerts[:ALERTS_MAX])]
    if more := len(alerts) - len(told):
        told.append(f"and {more} more")
    return "\n\n".join(told)


def _told(alert: Alert, *, is_firing: bool) -> str:
    said = alert.annotations
    until = "" if is_firing or alert.ends_at is None else f", until {_clock(alert.ends_at)}"
    lines = [
        said.get("summary", ""),
        (said.get("no_data") or said.get("clear", "")) if is_firing else said.get("gone", ""),
        f"{'since' if is_firing else 'from'} {said.get('since') or _clock(alert.starts_at)}{until}",
        (said.get("finding") or said.get("description", "")) if is_firing else "",
        alert.generator_url,
    ]
    return "\n".join(line for line in lines if line)


def _clock(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

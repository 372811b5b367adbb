"""Diagnoses of cells as they are stored."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from queries.findings.diagnosis import diagnose
from queries.findings.findings import Diagnosis
from queries.findings.record import BEFORE_NS, CellRecord, record_of
from queries.record import CellExecutions, executions_of, instant
from queries.runner import Rows, run

OTHERS_LAG: Final = timedelta(minutes=15)
"""Other engines' executions are looked for so long before the cell, by their own clocks, ..."""
ARRIVED_WITHIN: Final = timedelta(minutes=1)
"""... and compared with it if they arrived within so short a time of it."""


def find_in_cell(url: str, service_instance_id: str, cell: str) -> Diagnosis:
    """The diagnosis of a stored cell.

    Args:
        url: ClickHouse.
        service_instance_id: The engine; '' where only one has a cell of that name.
        cell: As the query `cells` names it.

    Raises:
        UnknownCellError, AmbiguousCellError: no engine, or more than one, has such a cell.
        QueriesError: as `queries.runner.run`.
    """
    return diagnose(stored_record(url, service_instance_id, cell))


def stored_record(url: str, service_instance_id: str, cell: str) -> CellRecord:
    """A stored cell and its neighbourhood, as a diagnosis takes them. Raises as `find_in_cell`."""
    return neighbourhood_of(url, executions_of(url, service_instance_id, cell, BEFORE_NS / 1e9))


def neighbourhood_of(url: str, recorded: CellExecutions) -> CellRecord:
    """The record of a cell that was read with `BEFORE_NS` of history: with what is known of other engines' clocks.

    Raises:
        QueriesError: as `queries.runner.run`.
    """
    instance, cell = recorded.engine.service_instance_id, recorded.cell
    own = run("engines", url, "rows", service_instance_id=instance, cell=cell)
    first, last = recorded.executions[0].started_at, recorded.executions[-1].started_at
    window = {"from": instant(first) - OTHERS_LAG, "to": instant(last) + timedelta(microseconds=1)}
    others = run("engines", url, "rows", **window)
    return record_of(
        recorded.executions,
        recorded.before,
        service_instance_id=instance,
        cell=cell,
        arrival_lag_ns=_unix_ns(own[0]["last_received_at"]) - _unix_ns(own[0]["last_seen"]) if own else None,
        others_until_ns=_others_until(own, others),
    )


def _others_until(own: Rows, others: Rows) -> tuple[int, ...]:
    """Up to when other engines' executions reach that arrived together with the cell's."""
    return tuple(
        _unix_ns(row["last_seen"])
        for row in others
        for cell in own
        if row["service_instance_id"] != cell["service_instance_id"]
        and abs(row["last_received_at"] - cell["last_received_at"]) <= ARRIVED_WITHIN
    )


def _unix_ns(moment: Any) -> int:
    """A moment as a row holds it, to the microsecond."""
    since: timedelta = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.fromtimestamp(0, UTC)
    return (since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds) * 1000

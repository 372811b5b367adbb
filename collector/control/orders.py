"""The orders there are, and carrying them out on a store of this process."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from clickhouse_connect.driver.client import Client

from collector.backup.making import Source, make_backup
from collector.control.names import BACK_UP, CHANGE_RETENTION, COUNT_EXPIRING, TELL_RETENTION, TELL_STORE
from collector.errors import CollectorError
from collector.store.retention import StoreRetention


class OrderError(CollectorError):
    """An order that is none, or lacks something."""


class Holdings(NamedTuple):
    """A store of this process, and what belongs to it."""

    using: Callable[[], AbstractContextManager[Client]]
    """The store's client, for one order at a time."""
    cluster: str
    pinned: Mapping[str, int]
    """What TACHOGRAPH_RETENTION says, by table."""
    source: Source | None
    """What a backup is made of; None where the store is a server's."""
    store_url: str = ""
    """Where the server is that the store is on, by `place_of`; empty is the embedded one."""


class Orders:
    """Carries out orders, each given by name with JSON's values; answers in JSON's values.

    Every order raises a `CollectorError` where it cannot be carried out.
    """

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._known: Mapping[str, Callable[[Client, Mapping[str, Any]], Any]] = {
            TELL_RETENTION: self._tell_retention,
            CHANGE_RETENTION: self._change_retention,
            COUNT_EXPIRING: self._count_expiring,
            BACK_UP: self._back_up,
        }

    def carry_out(self, name: str, values: Mapping[str, Any]) -> Any:
        """Do it, and return what came of it.

        Raises:
            OrderError: there is no such order, or it lacks a value.
            CollectorError: it cannot be carried out.
        """
        if name == TELL_STORE:  # Also where the store does not answer.
            return self._holdings.store_url
        if name not in self._known:
            raise OrderError(f"no order {name[:60]!r}: this collector is of another version")
        try:
            with self._holdings.using() as client:
                return self._known[name](client, values)
        except KeyError as error:
            raise OrderError(f"{name} wants a value for {error}") from error

    def _retention(self, client: Client) -> StoreRetention:
        return StoreRetention(client, self._holdings.cluster, self._holdings.pinned)

    def _tell_retention(self, client: Client, _: Mapping[str, Any]) -> Any:
        return [table._asdict() for table in self._retention(client).told()]

    def _change_retention(self, client: Client, values: Mapping[str, Any]) -> Any:
        return self._retention(client).change(str(values["table"]), _days_of(values))._asdict()

    def _count_expiring(self, client: Client, values: Mapping[str, Any]) -> Any:
        return self._retention(client).would_expire(str(values["table"]), _days_of(values))

    def _back_up(self, client: Client, values: Mapping[str, Any]) -> Any:
        if self._holdings.source is None:
            raise OrderError("a server is backed up by its own BACKUP: docs/cluster.md shows how")
        return make_backup(client, self._holdings.source, Path(str(values["to"])))._asdict()


def _days_of(values: Mapping[str, Any]) -> int:
    try:
        return int(values["days"])
    except (ValueError, TypeError) as error:
        raise OrderError(f"days are a number, and not {values['days']!r}") from error

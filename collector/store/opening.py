"""Opening the store for the writer, and opening it anew after a fault."""

from collections.abc import Callable, Mapping

import structlog
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.httpclient import HttpClient

from collector.store.damaged_parts import DamagedParts
from collector.store.migrations import SchemaFile, all_schema_files, apply_schema, id_of, schema_files
from collector.store.request_store import RequestStore
from collector.store.retention import StoreRetention
from collector.store.views import make_anew, views_astray

log = structlog.get_logger(__name__)


def schema_for(client: Client) -> list[SchemaFile]:
    """What a store is to have: the embedded engine's differs from a server's."""
    return schema_files(embedded=not isinstance(client, HttpClient))


def prepare_embedded(client: Client) -> None:
    """The embedded store as this version wants it, before anything is inserted: nobody but this process can change it.

    Raises:
        SchemaError: its schema cannot be brought up to date.
        ClickHouseError: it fails otherwise.
    """
    apply_schema(client, schema_for(client))
    if astray := views_astray(client, all_schema_files()):
        make_anew(client, astray)
        log.warning("views made anew, which were not the schema's", views=[view.name for view in astray])


class StoreOpening:
    """Called by one thread, each time it wants a store; the one before is closed.

    The schema is brought up to date each time: the server may be another one than before, without any. So is what
    TACHOGRAPH_RETENTION pins, in days by table. Inserts into the embedded store count once `damaged_parts` has found them whole.
    """

    def __init__(
        self,
        open_client: Callable[[], Client],
        cluster: str = "",
        pinned: Mapping[str, int] | None = None,
        damaged_parts: DamagedParts | None = None,
    ) -> None:
        self._open_client = open_client
        self._pinned = pinned or {}
        self._cluster = cluster
        self._damaged_parts = damaged_parts
        self._client: Client | None = None
        self.store_id = ""
        """Which store was opened last, as `id_of` has it; '' before the first."""

    def __call__(self) -> RequestStore:
        """A store that is ready.

        Raises:
            CollectorError: it cannot be reached, or its schema not be brought up to date.
            ClickHouseError: it fails otherwise.
        """
        self.close()
        self._client = client = self._open_client()
        apply_schema(client, schema_for(client), self._cluster)
        if changed := StoreRetention(client, self._cluster, self._pinned).pin():
            log.info("retention changed", **{table: f"{self._pinned[table]} days" for table in changed})
        self.store_id = id_of(client)
        return RequestStore(client, self._damaged_parts.inserting) if self._damaged_parts else RequestStore(client)

    def close(self) -> None:
        """Close what is open."""
        client, self._client = self._client, None
        if client:
            client.close()

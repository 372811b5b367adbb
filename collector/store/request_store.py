"""What the writer says to ClickHouse: which requests it knows, and what became of new ones.

One insert stores executions and outcomes together. ClickHouse decodes; see `schema/040_decode_otlp.sql`.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.httpclient import HttpClient

from collector.acceptance import Outcome, ReceivedRequest, token_of
from collector.decoding.packing import ENCODING, packed
from collector.decoding.wire import REQUEST_SCHEMA, marks
from collector.store.rollups import ARRIVED, arrivals, mend_rollups

_OUTCOMES: Final = """
SELECT request_id, sum(stored), sumMap(refused), sum(other_spans), sum(deduplicated), sum(clock_trouble)
FROM request_outcomes
WHERE request_id IN {request_ids:Array(String)}
GROUP BY request_id
"""

_FORGET: Final = "DELETE FROM request_outcomes WHERE request_id IN %(request_ids)s"
"""The driver puts the requests into the statement: in an address they are longer than a proxy in between may take."""
_FORGET_SETTINGS: Final[Mapping[str, Any]] = {"max_query_size": 64 * 1024**2}
_ENGINE: Final = "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'request_outcomes'"

_LOST: Final = f"""
SELECT
    (SELECT count() FROM graph_executions WHERE {ARRIVED})
  < (SELECT sum(stored) FROM request_outcomes WHERE {ARRIVED})
"""  # noqa: S608 -- our own condition

_INSERT_SETTINGS: Final[Mapping[str, Any]] = {
    # The defaults of these changed between ClickHouse's versions, and exactly-once hangs on each.
    "async_insert": 0,
    "insert_deduplicate": 1,
    "deduplicate_insert": "enable",
    "deduplicate_blocks_in_dependent_materialized_views": 1,
    "materialized_views_ignore_errors": 0,
    # A batch is one block: either none of it is read, or all.
    "input_format_parallel_parsing": 0,
    "max_insert_block_size": 1_000_000,
    # Merging expressions takes ClickHouse 8 to 10 ms an insert here, a third of the views' analysis, and gains nothing.
    "query_plan_merge_expressions": 0,
    # On a cluster: stored on the shards when answered.
    "distributed_foreground_insert": 1,
    "load_balancing": "in_order",
}
_READ_SETTINGS: Final[Mapping[str, Any]] = {
    # On a cluster: from the replicas that were written to. Others may be behind.
    "load_balancing": "in_order",
    # Every batch asks for other requests: what a part says to that is not worth remembering.
    "use_query_condition_cache": 0,
}


class RequestStore:
    """Requests in ClickHouse. For one thread: a client runs one query at a time.

    Args:
        inserting: Entered around each insert with the client; raises where the insert has to be made again.

    Every method raises `clickhouse_connect`'s `ClickHouseError` as it comes.
    """

    def __init__(
        self, client: Client, inserting: Callable[[Client], AbstractContextManager[None]] = lambda _: nullcontext()
    ) -> None:
        self._client = client
        self._inserting = inserting
        self._settings = _known_to(client, {**_INSERT_SETTINGS, **_schema_settings(client)})
        self._read_settings = _known_to(client, _READ_SETTINGS)

    def outcomes(self, request_ids: Iterable[str]) -> dict[str, Outcome]:
        """What became of those requests that are known."""
        ids = list(request_ids)
        if not ids:
            return {}
        rows = self._client.query(_OUTCOMES, parameters={"request_ids": ids}, settings=self._read_settings).result_rows
        return {
            request_id: Outcome(stored, dict(refused), other_spans, deduplicated, clock_trouble)
            for request_id, stored, refused, other_spans, deduplicated, clock_trouble in rows
        }

    def has_lost(self, batch: list[ReceivedRequest]) -> bool:
        """Whether executions are missing that the outcomes of these requests count as stored.

        ClickHouse notes an insert's token before it commits the rows. If it dies in between, every later attempt
        with that token passes for a repetition, and stores nothing.
        """
        parameters = arrivals(one.received_unix_ms for one in batch)
        ((lost,),) = self._client.query(_LOST, parameters=parameters, settings=self._read_settings).result_rows
        return bool(lost)

    def mend(self, batch: list[ReceivedRequest], token: str) -> list[str]:
        """After an insert that was made again: give the rollups what they lack of it; those that lacked something."""
        return mend_rollups(self._client, (one.received_unix_ms for one in batch), token, self._settings)

    def insert(self, batch: list[ReceivedRequest], token: str = "") -> None:
        """Store a batch of distinct requests. Again after a failure, with the same token, it is stored once.

        The token must be a hash of the content: of another batch with the same token, nothing is stored. Without
        one it is made here.
        """
        is_elsewhere = isinstance(self._client, HttpClient)
        with self._inserting(self._client):
            self._client.raw_insert(
                "otlp_requests",
                # The embedded engine's client writes pieces to a file; over HTTP they would be a request that cannot be repeated.
                insert_block=b"".join(_frames(batch)) if is_elsewhere else _pieces(batch),
                fmt="Protobuf",
                compression=ENCODING if is_elsewhere else None,
                settings={
                    **self._settings,
                    "insert_deduplication_token": token or token_of(one.request_id for one in batch),
                },
            )

    def forget(self, batch: list[ReceivedRequest]) -> bool:
        """Forget what is noted of the outcome of these requests, so that they count once when they are inserted by another
        token. False, and nothing is forgotten, on a cluster: a distributed table lets nothing be deleted through it.
        """
        ((engine,),) = self._client.query(_ENGINE, settings=self._read_settings).result_rows
        if engine == "Distributed":
            return False
        ids = tuple(one.request_id for one in batch)
        self._client.command(_FORGET, {"request_ids": ids}, settings=_known_to(self._client, _FORGET_SETTINGS))
        return True


def _pieces(batch: Iterable[ReceivedRequest]) -> Generator[bytes, None, None]:
    """The rows of an insert, in pieces to be written one after another, so that no request is copied."""
    for one in batch:
        before, after = marks(one.size, one.request_id, one.received_unix_ms)
        yield before
        yield one.request
        yield after


def _frames(batch: Iterable[ReceivedRequest]) -> Iterator[bytes]:
    """The same, compressed; the requests as they are."""
    for one in batch:
        before, after = marks(one.size, one.request_id, one.received_unix_ms)
        yield packed(before)
        yield one.packed
        yield packed(after)


def _known_to(client: Client, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Older servers lack some, and refuse a setting they do not know."""
    return {name: value for name, value in settings.items() if name in client.server_settings}


def _schema_settings(client: Client) -> dict[str, str]:
    """How to tell ClickHouse the form of a request: a server cannot see our file, and the embedded engine, given
    the text, writes it into the working directory."""
    if isinstance(client, HttpClient):
        return {
            "format_schema_source": "string",
            "format_schema": REQUEST_SCHEMA.read_text("utf-8"),
            "format_schema_message_name": "Request",
        }
    return {"format_schema_source": "file", "format_schema": f"{REQUEST_SCHEMA}:Request"}

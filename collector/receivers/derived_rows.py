"""POST /v1/rows/{table}: the door for rows computed from executions. JSON lines in, gzip allowed."""

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from collector.acceptance import AcceptanceError, StoreUnavailableError, TryAgainLaterError
from collector.derived_rows import DERIVED_TABLES, DerivedRows, OtherStoreError, UnknownTableError
from collector.receivers.answers import REQUEST_BYTES_MAX, WrongContentTypeError, http_status
from collector.receivers.http_body import gunzip, read_body
from collector.telemetry.metrics import CollectorMetrics

ROWS_PATH: Final = "/v1/rows"
STORE_HEADER: Final = "Tachograph-Store"
"""Of a request: the store that its rows are for. Without it, this collector's."""
_LONGEST_WAIT_S: Final = 60.0
_BODIES_MAX: Final = 2
"""Bodies in memory at a time; further senders wait, unread."""


class RowsReceiver:
    """Answers `{"stored": rows}` once they are stored, and otherwise `{"error": line}` with a status that tells
    whether it is worth sending again (503, with Retry-After) or not (400, 404, 409, 413, 415)."""

    def __init__(self, rows: DerivedRows, metrics: CollectorMetrics) -> None:
        self._rows = rows
        self._metrics = metrics
        self._bodies = asyncio.Semaphore(_BODIES_MAX)
        self.routes = [Route(f"{ROWS_PATH}/{{table}}", self._store, methods=["POST"])]

    async def _store(self, request: Request) -> Response:
        table = request.path_params["table"]
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S), self._bodies:
                stored = await self._stored(request, table)
            response = JSONResponse({"stored": stored})
            self._metrics.rows_stored.labels(table).inc(stored)
        except UnknownTableError as error:
            response = JSONResponse({"error": str(error)}, 404)
        except OtherStoreError as error:
            response = JSONResponse({"error": str(error)}, 409)
        except AcceptanceError as error:
            response = _refusal(error)
        except TimeoutError:
            response = _refusal(StoreUnavailableError("the rows are not stored yet"))
        except ClientDisconnect:
            response = JSONResponse({}, 400)  # Nobody reads it; it is counted.
        label = table if table in DERIVED_TABLES else "unknown"
        self._metrics.rows_requests.labels(label, str(response.status_code)).inc()
        return response

    async def _stored(self, request: Request, table: str) -> int:
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        body = await read_body(request.stream(), REQUEST_BYTES_MAX)
        if encoding not in ("identity", "gzip"):
            raise WrongContentTypeError(f"content encoding {encoding}: send gzip, or none")
        store_id = request.headers.get(STORE_HEADER, "")
        return await asyncio.to_thread(self._unpack_and_store, table, body, store_id, is_gzip=encoding == "gzip")

    def _unpack_and_store(self, table: str, body: bytes, store_id: str, *, is_gzip: bool) -> int:
        return self._rows.store(table, gunzip(body, REQUEST_BYTES_MAX) if is_gzip else body, store_id)


def _refusal(error: AcceptanceError) -> JSONResponse:
    headers = {"Retry-After": str(error.retry_after_s)} if isinstance(error, TryAgainLaterError) else None
    return JSONResponse({"error": str(error)}, http_status(error), headers)

"""Storing what was computed from executions: rows for the collector's door, which is the only way to write."""

import json
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Final

from engine_hooks.first_answer import FIRST_ANSWER_S, is_silent
from queries.client import shown
from queries.errors import CallError, OtherStoreError, RefusedError, UnreachableError
from queries.runner import run

TOKEN_VARIABLES: Final = ("TACHOGRAPH_INGEST_TOKEN", "TACHOGRAPH_INGEST_TOKENS")
"""Where the bearer token comes from, in this order; of several, separated by commas, the first is sent."""

CA_VARIABLE: Final = "TACHOGRAPH_TLS_CA"
"""Names a file of certificates (PEM) that vouch for an https collector; without it the system's do."""

STORE_HEADER: Final = "Tachograph-Store"
"""Names the store that a request is for, as the query `store_id` has it: another one's collector stores nothing."""

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Rows of one request, together; the collector takes four times as much."""
BATCH_ROWS: Final = 20_000
ATTEMPTS_MAX: Final = 5
"""How often a request is sent while the collector says that its store is away."""
ANSWER_TIMEOUT_S: Final = 90
_KEEPS_TO_ITSELF: Final = ("no table schema_changes", "ACCESS_DENIED")
"""What a store's refusal to say which one it is contains, where it may be read all the same."""
_RETRIED: Final = (429, 502, 503, 504)
_PAUSE_MAX_S: Final = 5


def store_rows(url: str, table: str, rows: Iterable[Mapping[str, Any]], *, beside: str = "") -> int:
    """Store rows in a derived table; how many they were.

    Sent in batches, each of which is stored as a whole or not at all; calling again with the same rows in the
    same order stores each once.

    Args:
        url: The collector's OTLP HTTP port, `http://127.0.0.1:4318`.
        table: `replays`, `replay_decisions`, …: the collector names them all when it knows no such table.
        rows: Column to value. Instants are datetimes with a time zone, or text that ClickHouse reads.
        beside: The ClickHouse, by URL, of what the rows were computed from; '' is any.

    Raises:
        OtherStoreError: the collector stores in another one than `beside`; nothing has been stored.
        CallError: the collector does not take these rows, or a value has no form in JSON.
        RefusedError: it refuses the token, or could not store them; or the ClickHouse of `beside` refuses to be read.
        UnreachableError: no collector answers at the URL, or nothing within 10 s, or no ClickHouse at that of `beside`.
    """
    stored, only = 0, _only(beside)
    try:
        for batch in _batches(rows):
            if not stored:
                _check_answering(url)
            stored += _send(f"{url.rstrip('/')}/v1/rows/{table}", batch, only)
    except OtherStoreError as wrong:
        raise other_store(url, beside) from wrong
    return stored


def store_id_at(url: str) -> str:
    """Which store the ClickHouse there is; '' where it does not let us know.

    Raises:
        RefusedError: it refuses to be read.
        UnreachableError: no ClickHouse answers.
    """
    try:
        store_id: str = run("store_id", url, "rows")[0]["store_id"]
    except RefusedError as refused:
        if any(sign in str(refused) for sign in _KEEPS_TO_ITSELF):
            return ""
        raise
    return store_id


def other_store(collector_url: str, clickhouse_url: str) -> OtherStoreError:
    """What to say where a collector stores in another one than is read."""
    return OtherStoreError(
        f"the collector at {collector_url} does not store in {shown(clickhouse_url)}:"
        " name the one that does by TACHOGRAPH_ROWS_URL"
    )


def _only(beside: str) -> dict[str, str]:
    """The header that keeps rows out of other stores; none where the store does not let us know which one it is."""
    store_id = store_id_at(beside) if beside else ""
    return {STORE_HEADER: store_id} if store_id else {}


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterable[bytes]:
    batch: list[bytes] = []
    size = 0
    for row in rows:
        line = _line(row)
        if batch and (size + len(line) > BATCH_BYTES or len(batch) == BATCH_ROWS):
            yield b"\n".join(batch)
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield b"\n".join(batch)


def _line(row: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(row, default=_written, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as wrong:
        raise CallError(f"a row cannot be written as JSON: {wrong}") from wrong


def _written(value: Any) -> Any:
    """The JSON of what json itself does not know: instants, and numbers of numpy and pandas."""
    if isinstance(value, datetime) and value.tzinfo is None:
        raise TypeError(f"{value.isoformat()} has no time zone")
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _check_answering(url: str) -> None:
    """Rows may take a while to be stored; that anybody is there shows at once."""
    if is_silent(url, "/healthz", trusted=os.environ.get(CA_VARIABLE)):
        raise UnreachableError(_no_collector(url, f"nothing comes back within {FIRST_ANSWER_S:.0f} s"))


def _no_collector(url: str, why: object) -> str:
    return f"no collector answers at {url} ({why}): start one with `tachograph collect`"


def _send(url: str, lines: bytes, headers: Mapping[str, str]) -> int:
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            with urllib.request.urlopen(  # noqa: S310
                _request(url, lines, headers), timeout=ANSWER_TIMEOUT_S, context=_trusting()
            ) as answer:
                return int(json.load(answer)["stored"])
        except urllib.error.HTTPError as refusal:
            with refusal:
                if refusal.code not in _RETRIED or attempt == ATTEMPTS_MAX:
                    raise _error(url, refusal) from refusal
                pause = refusal.headers.get("Retry-After", "")
            time.sleep(min(int(pause) if pause.isdecimal() else 1, _PAUSE_MAX_S))
        except (OSError, ValueError, KeyError) as wrong:
            raise UnreachableError(_no_collector(url, getattr(wrong, "reason", wrong))) from wrong
    raise AssertionError("the last attempt returns or raises")


def _request(url: str, lines: bytes, further: Mapping[str, str]) -> urllib.request.Request:
    if not url.startswith(("http://", "https://")):
        raise CallError(f"{url} is no URL of a collector: it looks like http://127.0.0.1:4318")
    headers = {"Content-Type": "application/x-ndjson", **further}
    if token := _token():
        headers["Authorization"] = f"Bearer {token}"
    return urllib.request.Request(url, data=lines, headers=headers)  # noqa: S310 -- http or https, see above


def _trusting() -> ssl.SSLContext:
    """Verifies https against the certificates of `CA_VARIABLE`, or else the system's."""
    file = os.environ.get(CA_VARIABLE)
    try:
        return ssl.create_default_context(cafile=file or None)
    except OSError as wrong:
        raise CallError(f"{CA_VARIABLE}: {file} holds no certificates in PEM") from wrong


def _token() -> str:
    """The first token set."""
    given = next((os.environ[name] for name in TOKEN_VARIABLES if os.environ.get(name)), "")
    return given.split(",")[0].strip()


def _error(url: str, refusal: urllib.error.HTTPError) -> CallError | OtherStoreError | RefusedError:
    try:
        said = str(json.loads(refusal.read(65536))["error"])
    except (ValueError, KeyError, TypeError):
        said = str(refusal.reason)
    if refusal.code in (400, 404, 413):
        return CallError(f"the collector does not take the rows ({refusal.code}): {said}")
    if refusal.code == 409:
        return OtherStoreError(said)
    if refusal.code in (401, 403):
        return RefusedError(f"the collector refuses the token ({refusal.code}): set {TOKEN_VARIABLES[0]}")
    return RefusedError(f"the collector at {url} did not store the rows ({refusal.code}): {said}")

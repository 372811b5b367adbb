"""All checks, in the order in which one explains the next."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from collector.doctor import door_checks, store_checks, view_checks
from collector.doctor.check import Check, ToldErrors, fault, ok
from collector.doctor.doors import Doors
from collector.doctor.store import clock_ms, reading
from collector.store.clickhouse import StoreError
from collector.store.migrations import SchemaFile, all_schema_files, schema_files


def examine(
    doors: Doors,
    clickhouse_url: str,
    now_ms: Callable[[], float] = lambda: time.time() * 1e3,
    files: list[SchemaFile] | None = None,
) -> Iterator[Check]:
    """Look over a running collector and its ClickHouse.

    Args:
        doors: The collector's.
        clickhouse_url: What readers read.
        now_ms: This machine's clock, Unix milliseconds.
        files: The schema that is wanted; this version's, where none is given.

    Raises:
        NotRunningError: no collector answers.
    """
    errors = ToldErrors()
    doors.read("/healthz")
    yield from door_checks.check_doors(doors)
    yield door_checks.check_credentials(doors)
    yield door_checks.check_readiness(doors, errors)
    answer = doors.read("/state")
    if answer.status != 200:
        advice = "set TACHOGRAPH_SQL_USER and TACHOGRAPH_SQL_PASSWORD as the collector has them"
        yield fault("state", f"/state answers {answer.status}: the ledger cannot be read", advice)
        return
    state = answer.body
    yield door_checks.check_ledger(state)
    yield door_checks.check_set_aside(state)
    yield door_checks.check_waiting(state)
    yield door_checks.check_disk(state)
    yield door_checks.check_store_bound(state)
    yield from door_checks.check_looks(state, errors)
    yield door_checks.check_clock("clock of the collector", state["now_unix_ms"], now_ms())
    try:
        wanted = schema_files() if files is None else files
        yield from _examine_store(doors, clickhouse_url, now_ms, wanted, state)
    except StoreError as error:
        yield fault(
            "ClickHouse",
            f"not looked into{errors.told('ClickHouse', str(error))}",
            "see TACHOGRAPH_CLICKHOUSE_URL and TACHOGRAPH_SQL_PASSWORD",
        )


def _examine_store(
    doors: Doors,
    clickhouse_url: str,
    now_ms: Callable[[], float],
    files: list[SchemaFile],
    state: Mapping[str, Any],
) -> Iterator[Check]:
    with reading(clickhouse_url) as client:
        yield ok("ClickHouse", f"version {client.server_version} answers")
        began_ms = now_ms()
        theirs_ms = clock_ms(client)
        yield door_checks.check_clock("clock of ClickHouse", theirs_ms, (began_ms + now_ms()) / 2)
        now = datetime.fromtimestamp(now_ms() / 1e3, UTC)
        yield store_checks.check_schema(client, files)
        known = [*files, *(file for file in all_schema_files() if file not in files)]
        yield view_checks.check_views(client, known, is_embedded=bool(state.get("store")))
        yield store_checks.check_windows(client, files)
        yield store_checks.check_ttls(client, files, state.get("retention_pinned", {}))
        yield store_checks.check_expiry(client, now)
        yield store_checks.check_damaged_parts(client)
        before = doors.read("/state").body
        counted = store_checks.Counted(client, now.date())
        yield from store_checks.check_contents(counted, before, doors.read("/state").body)
        yield store_checks.check_host_clocks(client)
        yield store_checks.check_instances(client)

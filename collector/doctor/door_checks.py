"""Checks that ask the collector alone: its doors, its credentials, and what it says of itself."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.filesize import decimal as told_bytes

from collector.doctor.check import Check, ToldErrors, fault, ok, warning
from collector.doctor.doors import Doors
from collector.repeated_look import AGAIN, LookState
from collector.spool.records import Ledger
from collector.store.bound import WARNED_FRACTION, BoundState
from engine_hooks.commands.counting import counted

WAITING_TOO_LONG_S: Final = 60
"""Whatever waits longer than this is not merely on its way."""
SCANT_BYTES: Final = 64 * 1024 * 1024
"""With less free, there may be no room for a large request: it is written twice, beside the spool's log."""
CLOCK_WARNING_S: Final = 2
CLOCK_FAULT_S: Final = 60


def check_doors(doors: Doors) -> Iterator[Check]:
    """Whether executions can come in, by HTTP and by gRPC, with our credentials."""
    status = doors.send_nothing().status
    if status == 200:
        yield ok("OTLP over HTTP", f"{doors.http_url} answers, and lets senders in")
    else:
        yield fault("OTLP over HTTP", f"{doors.http_url} answers {status}", _advice_on_refusal(status))
    code = doors.send_nothing_by_grpc()
    if code == "OK":
        yield ok("OTLP over gRPC", f"{doors.grpc_url} answers, and lets senders in")
    else:
        advice = _advice_on_refusal(401 if code == "UNAUTHENTICATED" else 0)
        yield fault("OTLP over gRPC", f"{doors.grpc_url} answers {code}", advice)


def _advice_on_refusal(status: int) -> str:
    if status in (401, 403):
        return "set TACHOGRAPH_INGEST_TOKENS to a token of this collector's"
    return "see the collector's log; tachograph COMMAND --help lists the settings of its ports"


def check_credentials(doors: Doors) -> Check:
    """Whether somebody without credentials is kept out, where there are any."""
    name = "credentials"
    if not doors.tokens_are_set and not doors.password_is_set:
        if doors.send_nothing().status == 200 and doors.read("/state").status == 200:
            return ok(name, "none are needed: the collector answers this machine only")
        advice = "set TACHOGRAPH_INGEST_TOKENS and TACHOGRAPH_SQL_PASSWORD as the collector has them"
        return fault(name, "the collector asks for credentials, and none are set here", advice)
    let_in = []
    if doors.tokens_are_set and doors.send_nothing(anonymously=True).status == 200:
        let_in.append("send")
    if doors.password_is_set and doors.read("/state", anonymously=True).status == 200:
        let_in.append("read")
    if let_in:
        advice = "start the collector with the same settings as this command: it runs without them"
        return fault(name, f"anybody may {' and '.join(let_in)}, though credentials are set here", advice)
    return ok(name, "nobody without them gets in")


def check_readiness(doors: Doors, errors: ToldErrors) -> Check:
    """Whether executions reach ClickHouse now."""
    name = "storing"
    answer = doors.read("/readyz")
    if answer.status == 200:
        return ok(name, "executions reach ClickHouse")
    by_error: dict[str, list[str]] = {}
    for reason in dict(answer.body.get("reasons", {})).values():
        what, _, error = str(reason).partition(": ")
        by_error.setdefault(error, []).append(what)
    reasons = [f"{'; '.join(what)}{errors.told(name, error) if error else ''}" for error, what in by_error.items()]
    return fault(
        name,
        "; ".join(reasons) or f"/readyz answers {answer.status}",
        "what waits is kept, and stored once the reason is gone",
    )


def check_ledger(state: Mapping[str, Any]) -> Check:
    """Whether every span that was received is accounted for."""
    ledger = {door: Ledger(**entries) for door, entries in state["ledger"].items()}
    wrong = {door: entries for door, entries in ledger.items() if not entries.adds_up}
    if wrong:
        told = "; ".join(
            f"{door}: {entries.received} received, {sum(entries[1:])} accounted for" for door, entries in wrong.items()
        )
        return fault("ledger", told, "this is a defect of Tachograph, or its spool was changed by hand")
    if not ledger:
        return ok("ledger", "nothing received yet")
    told = "; ".join(
        f"{door}: {entries.received:,} received, {entries.stored:,} stored, {entries.refused:,} refused, "
        f"{entries.pending:,} pending"
        for door, entries in ledger.items()
    )
    return ok("ledger", f"it adds up ({told})")


def check_set_aside(state: Mapping[str, Any]) -> Check:
    """Whether ClickHouse refused requests for good."""
    requests = state["spool"]["set_aside_requests"]
    if requests:
        return warning(
            "set aside",
            f"{counted(requests, 'request')} that ClickHouse refuses",
            "tachograph spool says which, and why",
        )
    return ok("set aside", "none")


def check_waiting(state: Mapping[str, Any]) -> Check:
    """Whether something waits for long."""
    oldest, pending = state["spool"]["oldest_unix_ms"], state["spool"]["pending_requests"]
    age_s = (state["now_unix_ms"] - oldest) / 1e3 if oldest else 0.0
    if age_s > WAITING_TOO_LONG_S:
        finding = f"{counted(pending, 'request')} wait{'s' if pending == 1 else ''} to be stored, the oldest for {age_s:,.0f} s"
        return warning("waiting", finding, "see the check of storing and the collector's log")
    return ok("waiting", f"{counted(pending, 'request')}, the oldest for {age_s:.1f} s")


def check_disk(state: Mapping[str, Any]) -> Check:
    """Whether the spool's disk has room."""
    free, least = state["disk"]["free_bytes"], state["disk"]["free_bytes_min"]
    total = state["disk"]["total_bytes"]
    finding = f"{told_bytes(free)} free of {told_bytes(total)}; {told_bytes(least)} are left free"
    turned_away_for = state["spool"].get("turned_away_for", "")
    if turned_away_for == "spool_gone":
        finding = "the spool is gone from its directory, or its disk does not answer: senders are turned away"
        return fault("disk", finding, "see to the data directory's disk, and restart the collector once it is back")
    if turned_away_for == "disk_full":
        return fault("disk", finding, "free some: senders are turned away, for what they send does not fit")
    if free < least or turned_away_for == "disk_free":
        return fault("disk", finding, "free some: senders are turned away (TACHOGRAPH_DISK_FREE_BYTES_MIN)")
    if free < max(2 * least, SCANT_BYTES):
        return warning("disk", finding, "free some, before senders are turned away")
    return ok("disk", finding)


def check_store_bound(state: Mapping[str, Any]) -> Check:
    """Whether the embedded store is within its bound."""
    name, told = "store's size", state.get("store")
    if not told:
        return ok(name, "a server's disks are its operator's")
    store = BoundState(**told)
    bound = f" of {told_bytes(store.bytes_max)}" if store.bytes_max else ", without a bound"
    finding = f"{told_bytes(store.bytes)}{bound}"
    if store.is_full:
        advice = "raise TACHOGRAPH_STORE_BYTES_MAX: senders are turned away, and no older day is left to drop"
        return fault(name, finding, advice)
    if store.dropped_rows:
        finding += (
            f"; {counted(store.dropped_rows, 'execution')} of {counted(store.dropped_days, 'day')} were dropped for it"
        )
        return warning(name, finding, "raise TACHOGRAPH_STORE_BYTES_MAX, or keep executions for fewer days")
    if store.fraction > WARNED_FRACTION:
        return warning(name, finding, "raise TACHOGRAPH_STORE_BYTES_MAX, before the oldest executions are dropped")
    return ok(name, finding)


def check_looks(state: Mapping[str, Any], errors: ToldErrors) -> Iterator[Check]:
    """Whether what is seen to now and again, is: judging cells, sampling, the store's bound. One check for each."""
    for name, told in state.get("looks", {}).items():
        look = LookState(**told)
        if not look.failed_in_row:
            yield ok(name, f"last done {look.done_s_ago:,.0f} s ago")
            continue
        failed = counted(look.failed_in_row, "look")
        finding = f"{look.failure} for {look.failing_s:,.0f} s ({failed} failed){errors.told(name, look.error)}"
        if look.failed_in_row < AGAIN:
            yield warning(name, finding, "nothing, if it goes well the next time: it is tried again by itself")
        else:
            advice = "see the checks of storing and of the schema, and the collector's log: what is left undone is made up for once the reason is gone"
            yield fault(name, finding, advice)


def check_clock(name: str, theirs_ms: float, ours_ms: float) -> Check:
    """Whether another clock agrees with ours, both read at the same time."""
    offset_s = (theirs_ms - ours_ms) / 1e3
    finding = f"{abs(offset_s):,.1f} s {'ahead of' if offset_s > 0 else 'behind'} this machine's"
    if abs(offset_s) > CLOCK_FAULT_S:
        return fault(name, finding, "set the clocks by NTP: executions go by both")
    if abs(offset_s) > CLOCK_WARNING_S:
        return warning(name, finding, "set the clocks by NTP")
    return ok(name, "agrees with this machine's")

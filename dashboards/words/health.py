"""The collector's figures as the Health page tells them: pure functions, so that tests need no browser."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

import pandas as pd

from dashboards.reading.collector import Collected, Sample
from dashboards.rows import rows_of
from dashboards.words.markdown import Column, short, since, table, without_empty
from dashboards.words.texts import age, escaped
from engine_hooks.commands.counting import counted
from queries.alerts.conditions import Condition, judge
from queries.alerts.states import Seen
from queries.clocks_ahead import CLOCK_OFF_ABOVE_S

RATE_OVER = timedelta(seconds=10)
"""The rate is told over so long, so that batches do not make it jump."""
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
ENTRIES = ("stored", "deduplicated", "refused", "set_aside", "other_spans", "pending")
SAMPLED = "Of healthy cells, which are kept as rollups only: `tachograph query sampled_cells`; of the last 180 days"


class Figure(NamedTuple):
    """One figure of the head line."""

    name: str
    value: str
    meaning: str


def bytes_text(size: float) -> str:
    """A size, in the unit that suits it."""
    unit = 0
    while size >= 1024 and unit < len(UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:,.0f} {UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:,.1f} {UNITS[unit]}"


def health_sentence(collected: Collected, silent: pd.DataFrame) -> str:
    """Whether what comes in is stored, and who fell silent; of a collector that is away, what was true last."""
    if collected.problem:
        return last_known_sentence(collected)
    if troubles_of(collected):
        told = f"**The collector does not store.** {reasons_of(collected)}. What it acknowledged is on disk and stored later."
    else:
        taken = "was taken in" if turned_away_for(collected) else "comes in"
        told = f"**What {taken} is stored;** {waiting_words(collected)} waiting."
    if aside := collected.state["spool"]["set_aside_requests"]:
        told += f" **{counted(aside, 'request')} set aside** that ClickHouse refuses: `tachograph spool list`."
    return f"{told} {silence_sentence(silent)}"


def last_known_sentence(collected: Collected) -> str:
    """That a collector does not answer, and how it fared when it last did."""
    ago = age(datetime.now(UTC) - collected.at) if collected.at else ""
    is_away_for = turned_away_for(collected)
    taken = "it turned senders away, what it took in" if is_away_for else "what came in"
    stored = f"it did not store ({reasons_of(collected)})" if troubles_of(collected) else f"{taken} was stored"
    return (
        f"**Whether anything comes in now, or is stored, is not known:** {ago} ago {stored}, and"
        f" {waiting_words(collected)} waited. While the collector is away nobody can tell which engines fell silent."
    )


def turned_away_for(collected: Collected) -> str:
    """Why the spool has no room for what is sent, as `/state` has it; '' where it has, or the collector tells nothing of it."""
    return str(collected.state["spool"].get("turned_away_for", ""))


def turned_away_sentence(collected: Collected) -> str:
    """That senders are turned away, why, and what to do; '' where they are not, or nobody knows."""
    reason = "" if collected.problem or not collected.known else turned_away_for(collected)
    if not reason:
        return ""
    spool, disk = collected.state["spool"], collected.state["disk"]
    why, advice = {
        "disk_full": (
            f"the disk of its spool is full ({bytes_text(disk['free_bytes'])} free of {bytes_text(disk['total_bytes'])})",
            "Free some of it.",
        ),
        "disk_free": (
            f"the disk of its spool has {bytes_text(disk['free_bytes'])} free, and {bytes_text(disk['free_bytes_min'])} are left free",
            "Free some of it, or lower TACHOGRAPH_DISK_FREE_BYTES_MIN.",
        ),
        "spool_bytes": (
            f"its spool holds as many bytes as it may ({bytes_text(spool['bytes_max'])})",
            "See to it that what waits is stored, or raise TACHOGRAPH_SPOOL_BYTES_MAX.",
        ),
    }.get(reason, (escaped(reason), "`tachograph doctor` says more."))
    return f"**The collector turns senders away:** {why}. {advice} Until then engines keep what they have room for."


def troubles_of(collected: Collected) -> Mapping[str, str]:
    """Why it does not store, by part. That senders are turned away for want of room in the spool is told by itself."""
    is_told = bool(collected.known and turned_away_for(collected))
    return {part: why for part, why in collected.troubles.items() if not (is_told and part == "spool")}


def reasons_of(collected: Collected) -> str:
    """Why it does not store."""
    return "; ".join(f"{escaped(part)}: {escaped(why)}" for part, why in troubles_of(collected).items())


def waiting_words(collected: Collected) -> str:
    """What waits to be stored."""
    waiting = collected.state["spool"]["pending_requests"]
    return counted(waiting, "request") if waiting else "nothing"


def silence_sentence(silent: pd.DataFrame) -> str:
    """How many engines fell silent; rows of `silent_engines`."""
    return f"{counted(len(silent), 'engine')} fell silent." if len(silent) else "No engine fell silent."


def figures(collected: Collected) -> list[Figure]:
    """The head line: what comes, what became of it, what waits, what is left."""
    spool, disk = collected.state["spool"], collected.state["disk"]
    sums = {name: sum(door.get(name, 0) for door in collected.state["ledger"].values()) for name in ENTRIES}
    bound = f" of {bytes_text(spool['bytes_max'])}" if spool["bytes_max"] else ", without a bound"
    waiting = f"{counted(spool['pending_requests'], 'request')}, {bytes_text(spool['pending_bytes'])}{bound}"
    sampled = collected.state.get("sampling")
    dropped = [Figure("Sampled away, executions", f"{sampled['dropped_executions']:,}", SAMPLED)] if sampled else []
    return [
        Figure("Coming in, spans/s", *rate_now(collected)),
        Figure("Stored, executions", f"{sums['stored']:,}", "Since the spool was made"),
        Figure("Refused, spans", f"{sums['refused']:,}", "They break the contract; since the spool was made"),
        Figure("Waiting", bytes_text(spool["pending_bytes"]), f"{waiting}; {oldest_text(collected.state)}"),
        Figure("Set aside, requests", f"{spool['set_aside_requests']:,}", "ClickHouse refuses them whatever is done"),
        Figure("Disk free", bytes_text(disk["free_bytes"]), f"Below {bytes_text(disk['free_bytes_min'])} senders wait"),
        *dropped,
    ]


def oldest_text(state: Mapping[str, Any]) -> str:
    """How long the oldest request waits."""
    oldest = state["spool"]["oldest_unix_ms"]
    if oldest is None:
        return "nothing waits"
    return f"the oldest for {age(timedelta(milliseconds=state['now_unix_ms'] - oldest))}"


def rate_now(collected: Collected) -> tuple[str, str]:
    """How fast it comes in, and what that means; of a collector that is away nobody knows."""
    if collected.problem:
        return "?", "Not known: the collector does not answer"
    return rate_text(collected.samples), f"Over the last {RATE_OVER.seconds} s"


def rate_text(samples: tuple[Sample, ...]) -> str:
    """Spans received each second lately; empty before there are two readings."""
    recent = tuple(one for one in samples if samples[-1].at - one.at <= RATE_OVER)
    # Somebody who comes back after a while sees what came in meanwhile.
    recent = samples[-2:] if len(recent) < 2 else recent
    seconds = (recent[-1].at - recent[0].at).total_seconds() if recent else 0.0
    return f"{max(0, recent[-1].received - recent[0].received) / seconds:,.0f}" if seconds else "…"


def ingest_rates(samples: tuple[Sample, ...]) -> pd.DataFrame:
    """Spans received and executions stored each second between one reading and the next: `at`, `of`, `per_s`."""
    totals = pd.DataFrame(samples, columns=list(Sample._fields))
    seconds = totals["at"].diff().dt.total_seconds()
    rates = pd.DataFrame(
        {
            "at": totals["at"],
            # A spool that was made anew begins at 0 again.
            "spans received": totals.received.diff().clip(lower=0) / seconds,
            "executions stored": totals.stored.diff().clip(lower=0) / seconds,
        }
    )
    return rates.iloc[1:].melt("at", var_name="of", value_name="per_s")


def ledger_table(state: Mapping[str, Any]) -> str:
    """What became of every span, by door."""
    columns = [Column("Door"), Column("Received", True), *(Column(named(one), True) for one in ENTRIES)]
    rows = [
        [escaped(door), *(f"{entries.get(name, 0):,}" for name in ("received", *ENTRIES))]
        for door, entries in state["ledger"].items()
    ]
    return table(columns, rows)


def named(entry: str) -> str:
    """An entry of the ledger as a heading."""
    return entry.replace("_", " ").capitalize()


def refusals_table(refusals: pd.DataFrame) -> str:
    """What was refused, by reason; without a column of doors where no counter names one."""
    # Some counters tell doors apart, those of the contract do not.
    doorless = "any" if (refusals.door != "").any() else ""
    rows = [
        [escaped(one.what), escaped(one.door) or doorless, escaped(one.reason), f"{one.times:,}"]
        for one in named_rows(refusals)
    ]
    heads = [Column("Refused"), Column("Door"), Column("Reason"), Column("Count", True)]
    return table(*without_empty(heads, rows))


class Refusal(NamedTuple):
    """A row of `Collected.refusals`."""

    what: str
    door: str
    reason: str
    times: int


def named_rows(refusals: pd.DataFrame) -> list[Refusal]:
    """The rows of the refusals."""
    return [Refusal(*row) for row in refusals[["what", "door", "reason", "count"]].itertuples(index=False, name=None)]


def clocks_table(skew: pd.DataFrame, zone: tzinfo) -> str:
    """Hosts whose clock is off, as `hosts_off` has them."""
    now = datetime.now(UTC)
    rows = [
        [
            short(one.host_name or "no host"),
            escaped(one.clock),
            f"{abs(one.off_s):,.1f}",
            since(one.off_since, zone, now),
        ]
        for one in rows_of(skew)
    ]
    return table([Column("Host"), Column("Its clock is"), Column("By, s", True), Column("Since")], rows)


def silent_table(silent: pd.DataFrame, zone: tzinfo) -> str:
    """Engines that fell silent, of the query `silent_engines`."""
    now = datetime.now(UTC)
    rows = [
        [
            short(one.host_name or "no host"),
            short(one.service_instance_id),
            short(one.engine_package),
            age(timedelta(seconds=one.silent_s)),
            since(one.silent_since, zone, now),
            f"{one.executions:,}",
        ]
        for one in rows_of(silent)
    ]
    heads = [Column("Host"), Column("Instance"), Column("Package"), Column("Silent for"), Column("Last arrival")]
    return table([*heads, Column("Executions before", True)], rows)


def losses_table(gaps: pd.DataFrame, zone: tzinfo) -> str:
    """Executions that never arrived, of the query `sequence_gaps`."""
    now = datetime.now(UTC)
    rows = [
        [
            since(one.gap_started_at, zone, now),
            short(one.host_name or "no host"),
            short(one.service_instance_id),
            f"{one.executions_missing:,}",
            f"{one.gap_s:,.2f}",
        ]
        for one in rows_of(gaps)
    ]
    heads = [
        Column("When"),
        Column("Host"),
        Column("Instance"),
        Column("Executions missing", True),
        Column("Gap, s", True),
    ]
    return table(heads, rows)


def silent_only(engines: pd.DataFrame, when: Sequence[Condition], behind_s: float = 0.0) -> pd.DataFrame:
    """Of the query `silent_engines`, those that an alert would tell of.

    Args:
        engines: Its rows.
        when: The alert rule's conditions.
        behind_s: How long the oldest request waits to be stored, in s: it may be theirs.
    """
    if engines.empty:
        return engines
    rows = (row._asdict() for row in rows_of(engines.assign(silent_s=engines.silent_s - behind_s)))
    return engines[[judge(when, row) is Seen.BREACHED for row in rows]]


def behind_s(collected: Collected) -> float:
    """How long the oldest request waits to be stored, in s; 0 where none does, or nobody knows."""
    oldest_ms: int | None = collected.state["spool"]["oldest_unix_ms"] if collected.known else None
    now_ms: int = collected.state.get("now_unix_ms", 0)
    return 0.0 if oldest_ms is None else max(0, now_ms - oldest_ms) / 1e3


def hosts_off(skew: pd.DataFrame, steady: pd.DataFrame) -> pd.DataFrame:
    """Hosts whose clock is off.

    Args:
        skew: Of the query `clock_skew`, which looks at the last day by the hosts' clocks.
        steady: Of the query `skewed_clocks`, which looks at what arrived of late: a clock that is years behind is in no last
            day. Since when, it does not know.
    """
    off = skew[skew.off_s != 0] if len(skew) else skew
    if steady.empty:
        return off
    others = steady[
        (steady.clock_off_s > CLOCK_OFF_ABOVE_S) & ~steady.host_name.isin(off.host_name if len(off) else [])
    ]
    unknown = pd.Series(pd.NaT, index=others.index, dtype="datetime64[ns, UTC]")
    told = others.rename(columns={"clock_off_s": "off_s"}).assign(off_since=unknown)[
        ["host_name", "clock", "off_s", "off_since"]
    ]
    # One without rows has no types either.
    return pd.concat([one for one in (off, told) if len(one)] or [off], ignore_index=True)

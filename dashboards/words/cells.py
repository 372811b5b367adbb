"""Sentences about a fleet's cells: pure functions from rows to plain English.

Rows are those of the query catalogue; text that comes from engines is escaped before it meets Markdown.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import pandas as pd

from dashboards.links import cell_address
from dashboards.questions.arrivals import clocks_ahead_s, gone_after_s
from dashboards.rows import Row
from dashboards.words.markdown import way
from dashboards.words.texts import (
    clock,
    engine_label,
    engine_names,
    escaped,
    percent,
    short_instance,
    two_ends,
    utc_text,
)
from engine_hooks.commands.counting import counted
from queries.clocks_ahead import clock_words

NAMED_MAX: Final = 3
"""Hosts or instances that a warning names."""
ENDED_AFTER: Final = timedelta(seconds=60)
EDGE: Final = timedelta(milliseconds=1)
"""Lengths are told in s with a fraction, which is not exact."""


def is_whole(cell: Row) -> bool:
    """Whether what was not found in a cell is not there: it has ended, and was judged after that.

    Args:
        cell: A row of a live query, or of its exact one, which judges what is stored when it is asked.
    """
    return bool(getattr(cell, "whole", cell.ended_at < datetime.now(UTC) - ENDED_AFTER))


def fleet_sentence(cells: pd.DataFrame, since: str) -> str:
    """How many engines, how many of them stuck, and the worst: of those that still run, where one of these is stuck.

    Args:
        cells: Rows of the query `cells`, or of `fleet_stretches`; at least one.
        since: The time range in words, such as `in the last 30 minutes`.
    """
    engines = counted(cells.service_instance_id.nunique(), "engine")
    stuck, inflated = cells[cells.stuck], cells[cells.inflated] if "inflated" in cells else cells.iloc[:0]
    if stuck.empty:
        told = f"**{engines} {since}, none stuck in plain decode.**"
        return told if inflated.empty else f"{told} Inflated estimates turned decisions in {cells_of(inflated)}."
    spent = "plain_s" if "plain_s" in stuck else "plain_stuck_s"
    is_gone = stuck.service_instance_id.isin(gone_after_s(cells).index)
    gone = int(stuck.service_instance_id[is_gone].nunique())
    left = f"; {counted(gone, 'engine')} gone since" if gone else ""
    running = stuck[~is_gone]
    others = "" if running.empty or not gone else " of the others"
    worst = (stuck if running.empty else running).sort_values(["plain_fraction", spent], ascending=False).iloc[0]
    name = " · ".join(map(two_ends, engine_names(worst)))
    link = way(escaped(name), cell_address(worst.service_instance_id, worst.cell), engine_label(worst))
    return (
        f"**{engines} {since}, {stuck.service_instance_id.nunique():,} stuck in plain decode** ({cells_of(stuck)}{left})."
        f" Worst{others}: {link} with {percent(worst.plain_fraction)} of its decoding time in plain decode."
    )


def clocks_sentence(cells: pd.DataFrame) -> str:
    """Whose clocks are ahead, the furthest first; '' where none is.

    Args:
        cells: Rows of the query `cells`, or of `fleet_stretches`; at least one.
    """
    ahead_s = clocks_ahead_s(cells)
    if ahead_s.empty:
        return ""
    engines = cells.drop_duplicates("service_instance_id").set_index("service_instance_id", drop=False)
    hosts = engines.host_name.where(engines.host_name != "", engines.service_instance_id)
    by_host = ahead_s.groupby(hosts.reindex(ahead_s.index)).max().sort_values(ascending=False, kind="stable")
    told = named_first([f"{escaped(two_ends(str(host)))}: {clock_words(by)}" for host, by in by_host.items()], "host")
    return f"{told}. Cells are drawn as far as they do not lie in the future; set the clock by NTP."


def repeats_sentence(repeated: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Under which instances several runs send at the same time, or executions are stored twice; '' where under none.

    Args:
        repeated: Rows of the query `repeated_numbers`, those with the most such executions first.
        cells: Rows of the query `cells`, or of `fleet_stretches`: those shown.
    """
    if repeated.empty:
        return ""
    instances = repeated.service_instance_id[repeated.service_instance_id.isin(cells.service_instance_id)]
    if instances.empty:
        return ""
    return (
        f"{named_first([escaped(two_ends(str(one))) or 'an instance without a name' for one in instances], 'instance')}: submission numbers come more than once."
        " Several runs or ranks send under one service.instance.id, or executions are stored twice: every figure counts"
        " them together. `tachograph query repeated_numbers` lists all."
    )


def named_first(names: Sequence[str], noun: str) -> str:
    """The first of these, and how many more there are."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {counted(more, noun)} more" if more > 0 else "")


def beyond_words(cells: pd.DataFrame, since: str, until: str) -> str:
    """That cells at the ends of a held time are told of whole; '' where none reaches beyond.

    Args:
        cells: Rows of the query `cells`, or of `fleet_stretches`; at least one.
        since, until: The ends, as the queries take them; '' is none.
    """
    before = bool(since) and bool((cells.started_at < pd.Timestamp(since)).any())
    beyond = cells.ended_at[cells.ended_at > pd.Timestamp(until)] if until else cells.ended_at[:0]
    after = not beyond.empty
    if not before and not after:
        return ""
    which = "begin before it or end after it" if before and after else "begin before it" if before else "end after it"
    run_still = bool((beyond >= datetime.now(UTC) - ENDED_AFTER).any())
    grows = ", and their figures grow until they have ended" if run_still else ""
    return f"Cells at the edge of this time that {which} are shown and counted whole{grows}."


def cells_of(cells: pd.DataFrame) -> str:
    """`3 cells`, and of how many engines where several have some. Stretches count by their stuck cells."""
    engines = cells.service_instance_id.nunique()
    number = int(cells.cells_stuck.sum()) if "cells_stuck" in cells else len(cells)
    return counted(number, "cell") + (f" of {engines:,} engines" if engines > 1 else "")


def cell_sentence(cell: Row, stuck: Row | None, inflation: pd.DataFrame) -> str:
    """What happened in a cell.

    Args:
        cell: Its row of `cells`.
        stuck: Its row of `stuck_plain`, where it is stuck.
        inflation: Its rows of `estimate_inflation`, the most time turned first.
    """
    if pd.isna(cell.plain_fraction):
        return "No ordinary decoding in this cell, so there is nothing to judge."
    if not cell.has_speculative:
        return "Fine: this engine has no speculative graph to choose from, so plain decode is all that it can do."
    if cell.stuck:
        return f"**Stuck in plain decode:** {stuck_clause(cell, stuck)}. {cause_clause(cell, inflation, stuck)}".strip()
    share = f"{percent(cell.plain_fraction)} of the decoding time went to plain decode"
    if cell.inflated:
        return f"**Inflated estimates**, though not stuck: {share}. {cause_clause(cell, inflation)}"
    if not is_whole(cell):
        return f"Fine so far: {share}. What its estimates did is not judged yet."
    return f"Fine: {share}, and no inflated estimate cost it anything worth naming."


def cell_label(cell: Row, zone: tzinfo) -> str:
    """A cell in one line of Markdown: when, whose, its name where that is more than when it began, and how much plain decode."""
    parts = [
        clock(cell.started_at, zone, datetime.now(UTC)),
        f"{' · '.join(escaped(two_ends(one)) for one in engine_names(cell))} / {escaped(short_instance(cell))}",
        "" if str(cell.cell).isdigit() else escaped(two_ends(cell.cell)),
        "" if pd.isna(cell.plain_fraction) else f"{percent(cell.plain_fraction)} plain decode",
    ]
    return " · ".join(part for part in parts if part)


def cell_header(cell: Row, zone: tzinfo) -> str:
    """Whose cell it is, when, and under which conditions, as two lines of Markdown."""
    now = datetime.now(UTC)
    lost = f", {counted(int(cell.executions_lost), 'execution')} lost" if cell.executions_lost else ""
    facts = [
        f"instance {escaped(cell.service_instance_id)}",
        f"cell {escaped(cell.cell)}",
        f"engine {escaped(cell.engine_name)} {escaped(cell.engine_version)}" if cell.engine_name else "",
        f"cost model {escaped(cell.scheduler_cost_model)}" if cell.scheduler_cost_model else "",
        f"arm {escaped(cell.cell_arm)}" if cell.cell_arm else "",
        "" if pd.isna(cell.cell_concurrency) else f"concurrency {cell.cell_concurrency}",
    ]
    began = f"{clock(cell.started_at, zone, now)} ({utc_text(cell.started_at)})"
    speed = "" if pd.isna(cell.tokens_per_s) else f" · **{cell.tokens_per_s:,.0f} tokens/s**"
    return (
        f"**{escaped(engine_label(cell))}** · from {began} for {cell.elapsed_s:.1f} s{speed}"
        f" · {counted(int(cell.executions), 'execution')}{lost}\n\n" + " · ".join(fact for fact in facts if fact)
    )


def stuck_clause(cell: Row, stuck: Row | None) -> str:
    """How much plain decode, for how long, and what the best speculative graph would have given."""
    share = f"{percent(cell.plain_fraction)} of the decoding time"
    if stuck is None:
        return share
    told = share if pd.isna(stuck.plain_stretch_s) else f"{share}, up to {stretch_words(cell, stuck)}"
    if pd.isna(stuck.gain_percent):
        return f"{told}; no speculative graph ran that it could be compared with"
    graph = escaped(stuck.best_speculative_graph)
    if stuck.gain_percent <= 0:
        return f"{told}, and rightly: {graph} would have given {-stuck.gain_percent:.1f} % fewer tokens/s"
    return f"{told}, while {graph} would have given {stuck.gain_percent:.1f} % more tokens/s"


def stretch_words(cell: Row, stuck: Row) -> str:
    """How long the longest stretch of plain decode was, and where it reaches beyond the cell."""
    ended = stuck.plain_since + timedelta(seconds=float(stuck.plain_stretch_s))
    # Of a running cell the end moves on, and the two are read one after the other.
    has_ends = [stuck.plain_since < cell.started_at, is_whole(cell) and ended > cell.ended_at + EDGE]
    beyond = " and ".join(
        words for words, is_so in zip(("began before this cell", "goes on after it"), has_ends, strict=True) if is_so
    )
    told = f"{stuck.plain_stretch_s:.1f} s at a stretch"
    return f"{told} that {beyond}" if beyond else told


def cause_clause(cell: Row, inflation: pd.DataFrame, stuck: Row | None = None) -> str:
    """Which graph was charged too much, and how many decisions that turned; that it was none is told of whole cells alone."""
    turned = inflation[inflation.turned_s > 0] if not inflation.empty else inflation
    if turned.empty or not cell.inflated:
        return unturned_clause(cell, stuck) if cell.stuck else ""
    worst = turned.iloc[0]
    return (
        f"{escaped(worst.graph)} was charged up to {worst.estimate_max_ns / 1e6:.1f} ms for the"
        f" {worst.cost_ns / 1e6:.1f} ms that it costs, and that turned"
        f" {counted(int(cell.decisions_turned), 'decision')} ({cell.turned_s:.1f} s)."
    )


def unturned_clause(cell: Row, stuck: Row | None) -> str:
    """What is known of a stuck cell's cause where no turned decision was found."""
    if not is_whole(cell):
        return "Its cause is not judged yet."
    has_nothing_to_compare = stuck is not None and pd.isna(stuck.gain_percent)
    return "So its cause is not known." if has_nothing_to_compare else "Inflated estimates are not the cause."

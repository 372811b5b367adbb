"""Time as the collector saw it pass: an engine whose clock is ahead makes nothing newer than its arrival.

Rows are those of `live_cells`, `cells` or `fleet_stretches`.
"""

import pandas as pd

from queries.clocks_ahead import CLOCK_OFF_ABOVE_S
from queries.top.frame import SILENT_AFTER_S


def seen_at(rows: pd.DataFrame) -> "pd.Series[pd.Timestamp]":
    """When each was last heard of: the last observed completion or its arrival, whichever is earlier."""
    ended, received = in_ns(rows.ended_at), in_ns(rows.last_received_at)
    return ended.where(ended <= received, received)


def gone_after_s(rows: pd.DataFrame) -> "pd.Series[float]":
    """By how much each engine that is gone lies behind the one that was last heard of, in s; those that are."""
    last = seen_at(rows).groupby(rows.service_instance_id).max()
    behind_s = (last.max() - last).dt.total_seconds()
    return behind_s[behind_s > SILENT_AFTER_S]


def clocks_ahead_s(rows: pd.DataFrame) -> "pd.Series[float]":
    """By how much each engine's clock is ahead, at least, in s, by the row that it was last heard of in; those that are."""
    ahead_s = (in_ns(rows.ended_at) - in_ns(rows.last_received_at)).dt.total_seconds()
    by_engine = rows.assign(ahead_s=ahead_s, seen_at=seen_at(rows)).sort_values("seen_at", kind="stable")
    latest = by_engine.groupby("service_instance_id").ahead_s.last()
    return latest[latest > CLOCK_OFF_ABOVE_S]


def in_ns(instants: "pd.Series[pd.Timestamp]") -> "pd.Series[pd.Timestamp]":
    """Arrivals are stored to the millisecond, completions to the nanosecond."""
    return instants.astype("datetime64[ns, UTC]")

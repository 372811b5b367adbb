"""What a collector tells of itself beyond figures: what `tachograph doctor` compares with ClickHouse."""

import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from collector.repeated_look import LookState
from collector.sampling.sampling import Sampled
from collector.spool.database import data_dir_of, disk_bytes
from collector.spool.spool import Spool
from collector.store.bound import StoreBound


def state_of(
    spool: Spool,
    bound: StoreBound | None = None,
    sampled: Sampled | None = None,
    pinned: Mapping[str, int] | None = None,
    store_id: str = "",
    *,
    looks: Mapping[str, LookState] | None = None,
    turned_away_for: str = "",
) -> Mapping[str, Any]:
    """The ledger, what waits, why there is no room for more (`Writer.no_room_in_spool`), which store it is for, the store's size, what TACHOGRAPH_RETENTION pins, what sampling dropped, what is seen to now and again, the disk, the clock and the data directory, as JSON has it. All of it is of one spool, since it was made."""
    disk = disk_bytes(spool.file)
    return {
        "version": version("tachograph"),
        "data_dir": str(data_dir_of(spool.file)),
        "now_unix_ms": time.time_ns() // 1_000_000,
        "ledger": {door: entries._asdict() for door, entries in spool.ledger().items()},
        "stored_by_day": {day.isoformat(): stored for day, stored in spool.stored_by_day().items()},
        "spool": {**spool.state()._asdict(), "bytes_max": spool.limits.bytes_max, "turned_away_for": turned_away_for},
        "store_id": store_id,
        "store": bound.state._asdict() if bound else None,
        "retention_pinned": dict(pinned or {}),
        "sampling": sampled._asdict() if sampled else None,
        "looks": {name: look._asdict() for name, look in (looks or {}).items()},
        "disk": {"free_bytes": disk.free, "total_bytes": disk.total, "free_bytes_min": spool.limits.free_bytes_min},
    }

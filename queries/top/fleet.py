"""Rows of the query `cells` as a fleet: engines, each with its cells in slots of 30 s. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from engine_hooks.contract.names import CELL_WINDOW_NS
from queries.clocks_ahead import CLOCK_OFF_ABOVE_S

SLOT_S: Final = CELL_WINDOW_NS // 1_000_000_000
"""Time that one place in a row stands for, in s."""


class Cell(NamedTuple):
    """What is shown of a cell."""

    cell: str
    started_at: datetime
    ended_at: datetime
    received_at: datetime
    """Its last arrival, by the collector's clock."""
    plain_fraction: float | None
    """None where there is nothing to judge: no ordinary decoding, or no speculative graph to choose."""
    stuck: bool
    inflated: bool
    tokens_per_s: float | None

    @property
    def slots(self) -> range:
        """The slots that it takes: the one it begins in, and more where it is longer than one."""
        first = slot_of(self.started_at)
        length = round((self.ended_at - self.started_at).total_seconds() / SLOT_S)
        return range(first, first + max(1, length))

    @property
    def seen_at(self) -> datetime:
        """When it was last heard of: a clock that is ahead makes no cell newer than its arrival."""
        return min(self.ended_at, self.received_at)

    @property
    def ahead_s(self) -> float:
        """By how much its engine's clock is ahead, at least, in s; 0 where it is not, or by no more than records travel."""
        ahead_s = (self.ended_at - self.received_at).total_seconds()
        return ahead_s if ahead_s > CLOCK_OFF_ABOVE_S else 0.0


class Engine(NamedTuple):
    """One row."""

    service_instance_id: str
    host_name: str
    engine_package: str
    engine_recipe: str
    cells: tuple[Cell, ...]
    """The one heard of last at the end; of those that begin in one slot the worst."""
    lost_s: float
    """Wall time of decisions that inflated estimates turned to a worse graph, over all its cells here, in s."""
    stuck_cells: int

    @property
    def newest(self) -> Cell:
        return self.cells[-1]


class Sort(StrEnum):
    """Which engine comes first."""

    LOST = "lost"
    """The one that lost the most; of those that lost nothing, the one with the most stuck cells."""
    SLOWEST = "slowest"
    """The one with the fewest tokens/s in its newest cell; those of which they are not known last."""
    PLAIN = "plain"
    """The one with the highest plain fraction in its newest cell."""
    HOST = "host"
    """By the names of hosts."""


def slot_of(moment: datetime) -> int:
    """The slot that an instant lies in, counted from the Unix epoch."""
    return int(moment.timestamp() // SLOT_S)


def engines_of(rows: Iterable[Mapping[str, Any]]) -> list[Engine]:
    """The engines of rows of `cells`, in no order."""
    by_engine: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_engine.setdefault(row["service_instance_id"], []).append(row)
    return [_engine(name, of_engine) for name, of_engine in by_engine.items()]


def arranged(engines: Iterable[Engine], sort: Sort, host: str) -> list[Engine]:
    """The engines whose host's name contains a text, in order."""
    wanted = host.casefold()
    return sorted((one for one in engines if wanted in one.host_name.casefold()), key=_ORDERS[sort])


def _engine(name: str, rows: list[Mapping[str, Any]]) -> Engine:
    latest = max(rows, key=lambda row: row["started_at"])
    shown: dict[int, Cell] = {}
    for cell in map(_cell, rows):
        before = shown.get(cell.slots.start)
        shown[cell.slots.start] = max(before, cell, key=_badness) if before else cell
    return Engine(
        service_instance_id=name,
        host_name=latest["host_name"],
        engine_package=latest["engine_package"],
        engine_recipe=latest["engine_recipe"],
        cells=tuple(sorted(shown.values(), key=lambda cell: (cell.seen_at, cell.started_at))),
        lost_s=sum(row["turned_s"] for row in rows),
        stuck_cells=sum(row["stuck"] for row in rows),
    )


def _cell(row: Mapping[str, Any]) -> Cell:
    return Cell(
        cell=row["cell"],
        started_at=in_utc(row["started_at"]),
        ended_at=in_utc(row["ended_at"]),
        received_at=in_utc(row["last_received_at"]),
        plain_fraction=row["plain_fraction"] if row["has_speculative"] else None,
        stuck=bool(row["stuck"]),
        inflated=bool(row["inflated"]),
        tokens_per_s=row["tokens_per_s"],
    )


def in_utc(moment: datetime) -> datetime:
    """The runner's times are UTC without a word."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _badness(cell: Cell) -> tuple[bool, bool, float]:
    return cell.stuck, cell.inflated, -1.0 if cell.plain_fraction is None else cell.plain_fraction


def _name(engine: Engine) -> tuple[str, str, str]:
    return engine.host_name, engine.engine_package, engine.service_instance_id


def _by_loss(engine: Engine) -> tuple[Any, ...]:
    # To a tenth, as it is shown: what cannot be told apart is ordered by name, and does not jump.
    return -round(engine.lost_s, 1), -engine.stuck_cells, _name(engine)


def _by_speed(engine: Engine) -> tuple[Any, ...]:
    speed = engine.newest.tokens_per_s
    return speed is None, speed or 0.0, _name(engine)


def _by_plain(engine: Engine) -> tuple[Any, ...]:
    return -(engine.newest.plain_fraction or 0.0), _name(engine)


_ORDERS: Final = {Sort.LOST: _by_loss, Sort.SLOWEST: _by_speed, Sort.PLAIN: _by_plain, Sort.HOST: _name}

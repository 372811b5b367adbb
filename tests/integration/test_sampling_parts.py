"""A look goes through the engines in parts, so that a statement's memory is bounded; what is dropped is as if by one statement."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pytest
from clickhouse_connect.driver.client import Client

from collector.sampling import sampling
from collector.sampling.sampling import STRETCHES_AT_ONCE, Sampling
from engine_hooks.contract.execution import EngineResource
from tests.integration.test_sampling import RULES, S_NS, judge, left, reasons, steady, store

DROPPED: Final = "dropped"
KEPT_ALONE: Final = ("share", "marked")
"""Reasons that do not speak against neighbours."""
CELLS: Final = 200_000
MEMORY_MAX: Final = 160 * 1024**2
"""Half of what one statement over so many cells took."""
_SAMPLED_LATELY: Final = """
INSERT INTO cell_samples (received_on, service_instance_id, cell, first_started_at, last_started_at, executions, reason, examined_at, dropped_at)
SELECT
    received_on, service_instance_id, cell, first_started_at, last_started_at, executions, if(cityHash64(cell) % 2 = 0, 'late host', '') AS why,
    now64(3, 'UTC'), if(why = '', now64(3, 'UTC'), toDateTime64(0, 3, 'UTC'))
FROM cell_windows
WHERE startsWith(service_instance_id, 'lately-')
"""
_ROLLED_UP_LATELY: Final = """
INSERT INTO cell_windows (received_on, window_started_at, service_instance_id, cell, first_started_at, last_started_at, last_received_at, executions)
SELECT
    toDate(window_started_at), toStartOfDay(now('UTC')) - 30 * intDiv(number, 100) AS window_started_at, concat('lately-', toString(number % 100)),
    toString(number), window_started_at, window_started_at, window_started_at, 1000
FROM numbers({cells:UInt64})
"""


class Stored(NamedTuple):
    """A cell as the rollup and sampling's own table have it; times in s, so long before today began."""

    engine: str
    cell: str
    ago_s: int
    lasts_s: int
    fate: str | None
    """Its reason, '' for healthy, `DROPPED`, None for not examined."""
    came_later: bool
    over_midnight: bool


class Recording(Sampling):
    """One that remembers which parts it asked for."""

    asked: list[int]

    def _query(self, sql: str, values: dict[str, Any]) -> list[Any]:
        if "part" in values:
            self.asked = [*getattr(self, "asked", []), values["part"]]
        return super()._query(sql, values)


def drawn(seed: int) -> list[Stored]:
    chance = random.Random(seed)
    fates = [*[""] * 24, None, DROPPED, *KEPT_ALONE, "late host"]
    return [
        Stored(
            f"engine-{engine}",
            f"cell-{n}",
            3600 + n * chance.choice((30, 300)),
            chance.choice((29, 29, 900)),
            chance.choice(fates),
            chance.random() < 0.02,
            chance.random() < 0.1,
        )
        for engine in range(12)
        for n in range(chance.choice((1, 5, 80)))
    ]


def put(client: Client, cells: list[Stored]) -> datetime:
    """Stores them as the rollup and the sampler would have; returns what `ago_s` counts from."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    windows: list[list[Any]] = []
    samples: list[list[Any]] = []
    for one in cells:
        first = midnight - timedelta(seconds=one.ago_s)
        last = first + timedelta(seconds=one.lasts_s)
        for n in range(1 + one.over_midnight):
            day = midnight.date() - timedelta(days=n)
            windows.append([day, first, one.engine, one.cell, first, last, 500 + (n == 0 and one.came_later)])
            if one.fate is not None:
                reason, dropped_at = (
                    ("", midnight) if one.fate == DROPPED else (one.fate, datetime.fromtimestamp(0, UTC))
                )
                samples.append([day, one.engine, one.cell, first, last, 500, reason, midnight, dropped_at])
    seen = ["first_started_at", "last_started_at", "executions"]
    cell = ["service_instance_id", "cell", *seen]
    client.insert("cell_windows", windows, column_names=["received_on", "window_started_at", *cell])
    names = ["received_on", *cell, "reason", "examined_at", "dropped_at"]
    client.insert("cell_samples", samples, column_names=names)
    return midnight


def to_drop(cells: list[Stored]) -> list[tuple[str, str]]:
    """By the rule as docs/sampling.md has it, the oldest first."""

    def bars(one: Stored) -> bool:
        is_examined = one.fate is not None and (one.fate != "" or not one.came_later)
        return not is_examined or one.fate not in ("", DROPPED, *KEPT_ALONE)

    def are_near(one: Stored, other: Stored) -> bool:
        gap_s = max(one.ago_s - one.lasts_s - other.ago_s, other.ago_s - other.lasts_s - one.ago_s)
        return one.engine == other.engine and gap_s <= RULES.context_s

    barring = [one for one in cells if bars(one)]
    going = [one for one in cells if one.fate == "" and not any(are_near(one, other) for other in barring)]
    return [(one.engine, one.cell) for one in sorted(going, key=lambda one: (-one.ago_s, one.engine, one.cell))]


def dropped(client: Client) -> set[tuple[str, str]]:
    query = "SELECT service_instance_id, cell FROM cell_samples GROUP BY ALL HAVING max(dropped_at) > toDateTime64(0, 3, 'UTC')"
    return {(engine, cell) for engine, cell in client.query(query).result_rows}


@pytest.mark.parametrize("cells_of_a_part", [1_000_000, 20])
@pytest.mark.parametrize("seed", range(2))
def test_in_however_many_parts_the_same_cells_go(
    clickhouse: Client, monkeypatch: pytest.MonkeyPatch, seed: int, cells_of_a_part: int
) -> None:
    cells = drawn(seed)
    put(clickhouse, cells)
    gone, going = dropped(clickhouse), to_drop(cells)
    monkeypatch.setattr(sampling, "CELLS_OF_A_PART", cells_of_a_part)
    assert Sampling(clickhouse, RULES).drop() == len(going) > 20
    assert dropped(clickhouse) == gone | set(going)


def test_the_oldest_of_all_parts_go_first(clickhouse: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = drawn(0)
    put(clickhouse, cells)
    gone, going = dropped(clickhouse), to_drop(cells)
    monkeypatch.setattr(sampling, "CELLS_OF_A_PART", 20)
    monkeypatch.setattr(sampling, "CELLS_AT_ONCE", 10)
    ended_after_one = Recording(clickhouse, RULES, is_ending=lambda: dropped(clickhouse) != gone)
    assert ended_after_one.drop() == 10
    assert len(ended_after_one.asked) > 5
    assert dropped(clickhouse) == gone | set(going[:10])
    Sampling(clickhouse, RULES).run()
    assert dropped(clickhouse) == gone | set(going)


def test_in_however_many_parts_the_same_cells_are_examined(clickhouse: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(STRETCHES_AT_ONCE + 2):
        for engine in range(n % 3 + 1):
            earlier = [one._replace(started_at=one.started_at - n * 600 * S_NS) for one in steady(31)]
            if n % 2:
                del earlier[700]
            store(clickhouse, earlier, EngineResource(f"engine-{engine}", host_name="a"))
    judge(clickhouse)
    Sampling(clickhouse, RULES).examine()
    found = reasons(clickhouse)
    assert set(found.values()) == {"", "executions lost"}
    clickhouse.command("TRUNCATE TABLE cell_samples")
    monkeypatch.setattr(sampling, "CELLS_OF_A_PART", 2)
    monkeypatch.setattr(sampling, "EXECUTIONS_OF_A_PART", 2_000)
    in_parts = Recording(clickhouse, RULES)
    assert in_parts.examine() == STRETCHES_AT_ONCE
    assert len(in_parts.asked) > 5
    assert reasons(clickhouse) == found


@pytest.mark.parametrize("step", [Sampling.examine, Sampling.drop])
def test_who_is_to_end_asks_of_no_further_part(
    clickhouse: Client, monkeypatch: pytest.MonkeyPatch, step: Callable[[Sampling], int]
) -> None:
    put(clickhouse, drawn(0))
    before = dropped(clickhouse)
    monkeypatch.setattr(sampling, "CELLS_OF_A_PART", 20)
    ending = Recording(clickhouse, RULES, is_ending=lambda: len(getattr(ending, "asked", [])) >= 2)
    assert step(ending) == 0
    assert ending.asked == [0, 1]
    assert dropped(clickhouse) == before


def test_the_memory_of_a_look_is_bounded(clickhouse: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store(clickhouse, steady(60), EngineResource("whole", host_name="a"))
    judge(clickhouse)
    clickhouse.command(_ROLLED_UP_LATELY, parameters={"cells": CELLS})
    clickhouse.command(_SAMPLED_LATELY)
    monkeypatch.setitem(sampling._SETTINGS, "max_memory_usage", MEMORY_MAX)
    assert Sampling(clickhouse, RULES).run().examined_cells == CELLS + 2
    assert left(clickhouse) == {}

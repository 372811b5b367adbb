"""Cells diagnosed as they are stored: fetched over HTTP, with what the same engine did before and how far other clocks reach."""

from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.names import CELL_WINDOW_NS
from queries.errors import UnknownCellError
from queries.findings.diagnosis import diagnose
from queries.findings.findings import Diagnosis, EstimateInflation, Kind, Verdict
from queries.findings.stored import find_in_cell, stored_record
from queries.runner import run
from tests.fixtures.labelled_records import executions_of_cell, labelled_record, truth
from tests.fixtures.query_rows import ENGINE, MS, START_NS, insert, insert_file, round_of
from tests.integration.test_queries_golden_gpu import insert_received

CELLS = ("r008", "r016", "r021", "r045")


def kinds(diagnosis: Diagnosis) -> set[Kind]:
    return {finding.kind for finding in diagnosis.findings}


def test_a_stored_cell_is_the_recorded_cell(clickhouse: Client, clickhouse_url: str, cases: Path) -> None:
    for name in CELLS:
        insert_file(clickhouse, cases / "cells" / f"{name}.otlp.gz")
    for name in CELLS:
        right = truth(cases / "cells")[name]
        instance, cell = right["resource"]["service.instance.id"], right["cell_id"]
        record = stored_record(clickhouse_url, instance, cell)
        assert record.executions == labelled_record(cases / "cells", name).executions
        # Of a host whose clock is ahead, all others came at the same time and reach less far.
        assert name != "r021" or len(record.others_until_ns) == len(CELLS) - 1
        diagnosis = find_in_cell(clickhouse_url, instance, cell)
        assert (diagnosis.label, set(diagnosis.also)) == (right["label"], set(right["also"]))
        for use in (use for found in diagnosis.findings for one in found.evidence for use in one.queries):
            assert run(use.name, clickhouse_url, "rows", **use.parameters), use
    with pytest.raises(UnknownCellError, match="absent"):
        find_in_cell(clickhouse_url, "", "absent")


def test_the_poison_lies_in_the_window_before(clickhouse: Client, clickhouse_url: str, cases: Path) -> None:
    """Without a benchmark's mark cells are windows of 30 s; the engine was poisoned at the end of the one before."""
    executions = executions_of_cell(cases / "cells", "r014")
    poisoned_ns = next(e.started_at for e in executions if e.graph_sequence == 784)
    boundary_ns = (poisoned_ns // CELL_WINDOW_NS + 1) * CELL_WINDOW_NS
    shift_ns = boundary_ns - poisoned_ns - 1_000_000_000
    moved = [e._replace(started_at=e.started_at + shift_ns, cell_id="") for e in executions]
    insert(clickhouse, moved, ENGINE)
    diagnosis = find_in_cell(clickhouse_url, "", str(boundary_ns // 1_000_000_000))
    assert diagnosis.being_in_plain.verdict == Verdict.WRONG
    assert diagnosis.stuck_by_fault
    inflation = next(found for found in diagnosis.findings if isinstance(found, EstimateInflation))
    assert inflation.poisoned_before
    assert [poison.sequence for poison in inflation.poisons] == [784]


def test_arrival_shows_a_clock_that_is_ahead(clickhouse: Client, clickhouse_url: str, cases: Path) -> None:
    """Executions that reach the collector before they ended, by their host's calendar."""
    executions = executions_of_cell(cases / "cells", "r008")
    (now_ns,) = clickhouse.query("SELECT toUnixTimestamp64Nano(now64(9))").result_rows[0]
    ahead_ns = now_ns + 300_000_000_000 - executions[-1].started_at
    insert(clickhouse, [e._replace(started_at=e.started_at + ahead_ns) for e in executions], ENGINE)
    record = stored_record(clickhouse_url, "", "bench-r008")
    assert record.arrival_lag_ns is not None
    assert -330_000_000_000 < record.arrival_lag_ns < -240_000_000_000
    assert Kind.CLOCK_AHEAD in kinds(diagnose(record))


def test_only_what_arrived_together_tells_of_a_clock(clickhouse: Client, clickhouse_url: str) -> None:
    """Three engines reach ten minutes less far: what came with the cell's shows a clock ahead, what came before does not."""
    insert_received(clickhouse, [round_of(n, 600_000 + 28 * n, "P128", 28) for n in range(20)], ENGINE, 3600)
    for number, sooner_s in enumerate((0, 0, 0, 120)):
        other = ENGINE._replace(service_instance_id=f"other-{number}", host_name=f"other-{number}")
        insert_received(clickhouse, [round_of(0, 1000 * number, "P128", 28)], other, 3600 + 600 - sooner_s)
    record = stored_record(clickhouse_url, "engine-1", str(START_NS // 1_000_000_000 + 600))
    assert sorted(record.others_until_ns) == [START_NS + (1000 * number + 28) * MS for number in range(3)]
    assert Kind.CLOCK_AHEAD in kinds(diagnose(record))

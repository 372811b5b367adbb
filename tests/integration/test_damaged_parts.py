"""Files that end too early, as a full disk leaves them: what was stored stays, and what cannot be had again is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client
from structlog.testing import capture_logs

from collector.doctor.check import Verdict
from collector.doctor.store_checks import check_damaged_parts
from collector.store.client import StoreClient
from collector.store.damaged_parts import DamagedParts
from tests.fixtures.databases import SERVER_URL
from tests.fixtures.query_rows import insert, round_of
from tests.fixtures.short_files import SPANS

pytestmark = pytest.mark.skipif(bool(SERVER_URL), reason="a server's files are not ours to look at")

ROOT = Path(__file__).parents[2]
ACTIVE = (
    "SELECT path FROM system.parts WHERE active AND database = currentDatabase() AND table = 'graph_executions'"
    " ORDER BY max_block_number"
)
SUMS = "SELECT count(), sum(graph_sequence), sum(graph_gpu_time_ns) FROM graph_executions"
ROLLED_UP = "SELECT sum(executions) FROM cell_windows"


@pytest.fixture
def parts(clickhouse: Client, data_dir: Path) -> DamagedParts:
    """Of the store under test."""
    return DamagedParts(StoreClient(lambda: clickhouse), data_dir, 0)


def store(client: Client, first: int, rounds: int = 20) -> None:
    insert(client, [round_of(n, 28 * n, "P128", 28) for n in range(first, first + rounds)])


def newest(client: Client) -> Path:
    return Path(client.query(ACTIVE).result_rows[-1][0])


def cut(part: Path, name: str | None = None) -> None:
    """Halve a file, or the largest of columns; the smallest files are emptied so."""
    file = part / name if name else max(part.glob("*.bin"), key=lambda one: one.stat().st_size)
    size = file.stat().st_size
    os.truncate(file, size // 2 if size > 1000 else 0)


def test_what_a_full_disk_leaves_of_inserts_and_merges_is_stored_all_the_same(tmp_path: Path) -> None:
    """Cut off are the executions of an insert, its rollups, its outcomes, and then the merge of all executions."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fixtures.short_files", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["acknowledged"] == 8 * SPANS
    executions, wall_time_ns, *counted = said["inserted"]
    assert [executions, *counted] == [8 * SPANS] * 5
    assert wall_time_ns > 0
    assert said["merged"] == said["inserted"]
    assert said["set_aside"] == []


@pytest.mark.parametrize("name", [None, "checksums.txt", "count.txt", "columns_substreams.txt"])
def test_what_a_damaged_part_was_merged_from_comes_back(
    clickhouse: Client, parts: DamagedParts, name: str | None
) -> None:
    for first in (0, 20, 40):
        store(clickhouse, first)
    before = clickhouse.query(SUMS).result_rows
    clickhouse.command("OPTIMIZE TABLE graph_executions FINAL")
    cut(newest(clickhouse), name)
    with capture_logs() as logs:
        parts.see_to_it()
    assert [log["event"] for log in logs] == [
        "a part of the store is damaged: a full disk?",
        "what a damaged part was merged from is back",
    ]
    assert clickhouse.query(SUMS).result_rows == before
    assert len(clickhouse.query(ACTIVE).result_rows) == 3
    assert check_damaged_parts(clickhouse).verdict == Verdict.OK
    store(clickhouse, 60)
    assert clickhouse.query("SELECT count() FROM graph_executions").first_row == (80,)
    assert clickhouse.query(ROLLED_UP).first_row == (80,)


def test_what_cannot_be_had_again_is_told_once_and_by_the_doctor(clickhouse: Client, parts: DamagedParts) -> None:
    clickhouse.command("SYSTEM STOP MERGES")
    store(clickhouse, 0)
    store(clickhouse, 20, 5)
    cut(newest(clickhouse))
    with capture_logs() as logs:
        parts.see_to_it()
        parts.see_to_it()
    lost = [log for log in logs if log["event"] == "rows of a damaged part are lost"]
    assert [(log["table"], log["rows_lost"], log["log_level"]) for log in lost] == [("graph_executions", 5, "error")]
    assert clickhouse.query("SELECT count() FROM graph_executions").first_row == (20,)
    check = check_damaged_parts(clickhouse)
    assert (check.name, check.verdict) == ("rows of damaged parts", Verdict.FAULT)
    assert check.finding == "1 damaged part of graph_executions, whose rows are not all there any more"
    assert lost[0]["directory"] in check.advice


def test_whole_parts_are_left_alone(clickhouse: Client, parts: DamagedParts) -> None:
    store(clickhouse, 0)
    clickhouse.command("ALTER TABLE graph_executions DELETE WHERE graph_sequence = 3 SETTINGS mutations_sync = 2")
    clickhouse.command("DELETE FROM graph_executions WHERE graph_sequence = 4")
    clickhouse.command("OPTIMIZE TABLE cell_windows FINAL")
    uuid = "SELECT metadata_modification_time, data_paths FROM system.tables WHERE database = currentDatabase() AND name = 'graph_executions'"
    before = clickhouse.query(uuid).result_rows
    with capture_logs() as logs:
        parts.see_to_it()
    assert (logs, clickhouse.query(uuid).result_rows, parts.trouble()) == ([], before, "")

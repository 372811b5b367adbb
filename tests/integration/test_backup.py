"""Backup and restore as a user runs them, beside a running collector and without one; and orders by the control door."""

import hashlib
import json
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import clickhouse_connect
import httpx
import pytest

from collector.backup.manifest import BackupError, Manifest
from collector.backup.putting_back import put_back
from tests.benchmarks.ingest_load import DOORS, requests_of, send_all
from tests.fixtures.running import ROOT, Addresses, free_addresses, running_collector, tachograph
from tests.fixtures.senders import eventually

SPANS = 200


@cache
def made_by(instance: str) -> list[bytes]:
    """The first requests of an engine instance: the same ones for every test."""
    return list(islice(requests_of(instance, SPANS), 6))


def send(to: Addresses, instance: str, requests: int) -> None:
    """An instance's first requests, acknowledged: they may be on their way into the store."""
    sent = send_all(DOORS["gRPC"], to, [made_by(instance)[:requests]])
    assert sent.acknowledged == requests


def contents(of: Addresses) -> dict[str, Any]:
    """What every reader sees of the store."""
    with clickhouse_connect.get_client(dsn=of.clickhouse_url) as client:
        return {
            "executions": client.query(
                "SELECT service_instance_id, count(), sum(graph_sequence), sum(cityHash64(span_id, started_at, received_at))"
                " FROM graph_executions GROUP BY ALL ORDER BY ALL"
            ).result_rows,
            "cells": client.query(
                "SELECT service_instance_id, sum(executions) FROM cell_graphs GROUP BY ALL ORDER BY ALL"
            ).result_rows,
            "outcomes": client.query("SELECT count(), sum(stored) FROM request_outcomes").result_rows,
        }


def told_of(of: Addresses) -> list[int]:
    """How many executions each of its tables tells of: an acknowledged request may be on its way into them."""
    return [sum(row[1] for row in rows) for rows in contents(of).values()]


def ordered(to: Addresses, order: str, body: bytes = b"{}", key: str | None = None) -> tuple[int, dict[str, Any]]:
    """What the control door answers."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    answer = httpx.post(
        f"http://127.0.0.1:{to.otlp_http_port}/control/{order}", content=body, headers=headers, timeout=60
    )
    return answer.status_code, answer.json()


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    """What a command that failed says."""
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A backup of a collector that ran and received, and what its store held; orders and the door are tried beside it."""
    directory = tmp_path_factory.mktemp("made")
    backup = directory / "backup"
    with running_collector(directory / "data") as collector:
        send(collector, "before:1", 5)
        eventually(lambda: told_of(collector) == [5 * SPANS] * 3)
        held = contents(collector)
        done = tachograph(collector, "backup", str(backup))
        assert done.returncode == 0, done.stderr
        assert f"({5 * SPANS:,} executions), 0 waiting requests" in done.stdout
        send(collector, "after:1", 3)
        eventually(lambda: len(contents(collector)["executions"]) == 2)
        again = tachograph(collector, "backup", str(backup))
        assert (again.returncode, "is there already" in one_line(again)) == (2, True)
        the_door_asks_for_its_key(collector)
        a_url_is_obeyed_beside_it(collector)
        retention_is_changed_through_it(collector)
    return backup, held


def a_url_is_obeyed_beside_it(collector: Addresses) -> None:
    assert ordered(collector, "store", key=(collector.data_dir / "control.key").read_text()) == (200, {"done": ""})
    elsewhere = ["--clickhouse-url", "http://127.0.0.1:9/x"]
    for order in (["retention"], ["retention", "set", "replays", "11"]):
        assert "127.0.0.1:9/x did not answer" in one_line(tachograph(collector, *order, *elsewhere))
    own = ["--clickhouse-url", collector.clickhouse_url]
    assert "only lets you read: " in one_line(tachograph(collector, "schema", "--apply", *own))


def the_door_asks_for_its_key(collector: Addresses) -> None:
    file = collector.data_dir / "control.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text()
    for wrong in (None, "x" * 64, key[:-1]):
        assert ordered(collector, "retention/tell", key=wrong)[0] == 401
    status, answer = ordered(collector, "retention/tell", key=key)
    assert (status, answer["done"][0]["table"]) == (200, "graph_executions")
    assert ordered(collector, "retention/tell", b"[1", key)[0] == 400
    assert ordered(collector, "nothing", key=key) == (
        409,
        {"error": "no order 'nothing': this collector is of another version"},
    )
    assert ordered(collector, "retention/change", key=key)[0] == 409
    assert ordered(collector, "backup", b'{"to": "here"}', key) == (422, {"error": "here is no absolute path"})
    assert ordered(collector, "retention/change", b'{"table": "cells", "days": "x"}', key) == (
        409,
        {"error": "days are a number, and not 'x'"},
    )


def retention_is_changed_through_it(collector: Addresses) -> None:
    done = tachograph(collector, "retention", "set", "replays", "12")
    assert "replays: kept for 12 days, before 90" in done.stdout
    tables = json.loads(tachograph(collector, "retention", "--json").stdout)
    assert {table["table"]: table["days"] for table in tables}["replays"] == 12
    assert "keeps rows for a time" in one_line(tachograph(collector, "retention", "set", "nothing", "12"))


def restored(backup: Path, tmp_path: Path) -> Addresses:
    addresses = free_addresses(tmp_path / "restored")
    done = tachograph(addresses, "restore", str(backup))
    assert done.returncode == 0, done.stderr
    assert "the same as in the backup" in done.stdout
    return addresses


def test_what_is_put_back_is_what_was_there_and_goes_on(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    backup, held = made
    addresses = restored(backup, tmp_path)
    assert "is there already: name a --data-dir without a store" in one_line(
        tachograph(addresses, "restore", str(backup))
    )
    with running_collector(addresses.data_dir) as collector:
        assert contents(collector) == held
        send(collector, "before:1", 6)  # The first five came before, in the same bytes.
        eventually(lambda: told_of(collector) == [6 * SPANS] * 3)
        looked_over = tachograph(collector, "doctor")
        assert looked_over.returncode == 0, looked_over.stdout + looked_over.stderr
        assert "is there already" in one_line(tachograph(collector, "restore", str(backup)))


def test_without_a_collector_the_store_is_opened_itself(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    addresses = restored(made[0], tmp_path)
    again = tmp_path / "again"
    done = tachograph(addresses, "backup", str(again))
    assert done.returncode == 0, done.stderr
    for manifest in (json.loads((path / "manifest.json").read_text()) for path in (made[0], again)):
        assert manifest["tables"]["graph_executions"]["rows"] == 5 * SPANS
    assert "replays: kept for 3 days" in tachograph(addresses, "retention", "set", "replays", "3").stdout


@pytest.mark.parametrize(
    ("view", "made_before"),
    [
        pytest.param("fill_engine_seconds", False, id="rollup"),
        pytest.param("judge_odd_spans", False, id="second look"),
        pytest.param("check_spans", True, id="first look, of a backup without checksums"),
    ],
)
def test_a_view_of_other_words_is_damage(
    made: tuple[Path, dict[str, Any]], tmp_path: Path, view: str, made_before: bool
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(made[0], backup)
    file = backup / "store" / "metadata" / "tachograph" / f"{view}.sql"
    content = file.read_bytes()
    assert b"plain_decode" in content
    file.write_bytes(content.replace(b"plain_decode", b"qlain_decode", 1))  # One bit, and SQL all the same.
    if made_before:
        without_checksums(backup)
    addresses = free_addresses(tmp_path / "restored")
    said = one_line(tachograph(addresses, "restore", str(backup)))
    what = (
        f"view {view} is not this version's" if made_before else f"store/metadata/tachograph/{view}.sql is not what was"
    )
    assert f"the backup {backup} is damaged: {what}" in said
    assert "copy it anew" in said
    assert not addresses.data_dir.exists()


def without_checksums(backup: Path) -> None:
    """As backups were made before their manifest had any."""
    manifest = json.loads((backup / "manifest.json").read_text())
    assert manifest.pop("files")
    (backup / "manifest.json").write_text(json.dumps(manifest))


def test_a_backup_made_before_there_were_checksums_is_put_back(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(made[0], backup)
    without_checksums(backup)
    addresses = restored(backup, tmp_path)
    with running_collector(addresses.data_dir) as collector:
        assert contents(collector) == made[1]
        with clickhouse_connect.get_client(dsn=collector.clickhouse_url) as client:
            assert "compared" not in {name for (name,) in client.query("SHOW DATABASES").result_rows}


TEXTS = {"codec": "default_compression_codec.txt", "substreams": "columns_substreams.txt"}


@pytest.mark.parametrize("harm", ["part_gone", "columns_gone", "list_gone", "list_cut", "byte", "codec", "substreams"])
def test_a_damaged_backup_is_refused_and_leaves_nothing(
    made: tuple[Path, dict[str, Any]], tmp_path: Path, harm: str
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(made[0], backup)
    parts = sorted((backup / "store" / "data").rglob("data.bin"), key=lambda path: path.stat().st_size)
    listed = backup / "store" / ".backup"
    if harm == "part_gone":
        parts[-1].unlink()
    elif harm == "columns_gone":
        next((backup / "store" / "data").rglob("columns.txt")).unlink()
    elif harm == "list_gone":
        listed.unlink()
    elif harm == "list_cut":
        listed.write_bytes(listed.read_bytes()[:-100])
    elif harm in TEXTS:  # Those in no list of checksums of ClickHouse's.
        text = next((backup / "store" / "data").rglob(TEXTS[harm]))
        content = bytearray(text.read_bytes())
        content[len(content) // 3] ^= 1
        text.write_bytes(content)
    else:
        content = bytearray(parts[-1].read_bytes())
        content[len(content) // 2] ^= 0xFF
        parts[-1].write_bytes(content)
    addresses = free_addresses(tmp_path / "restored")
    said = one_line(tachograph(addresses, "restore", str(backup)))
    assert f"the backup {backup} is damaged: " in said
    assert ("is missing" in said) == harm.endswith("gone")
    assert "copy it anew" in said
    assert "Code: " not in said
    assert not addresses.data_dir.exists()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        pytest.param("bytes", "its checksum is not the manifest's", id="bytes"),
        pytest.param("gone", "its spool.sqlite is missing", id="gone"),
        pytest.param("count", "holds 1 waiting request, and the backup says 0", id="count"),
        pytest.param("damaged before", "is damaged, and was when the backup was made", id="damaged before"),
    ],
)
def test_a_backup_whose_spool_is_not_what_it_says_is_refused(
    made: tuple[Path, dict[str, Any]], tmp_path: Path, harm: str, said: str
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(made[0], backup)
    spool = backup / "spool.sqlite"
    if harm == "gone":
        spool.unlink()
    elif harm == "count":
        with closing(sqlite3.connect(spool)) as connection, connection:
            connection.execute(
                "INSERT INTO requests (request_id, door, received_unix_ms, spans, size, request) VALUES ('a', 'grpc', 1, 1, 1, x'00')"
            )
    else:
        content = bytearray(spool.read_bytes())
        content[16384:] = b"\xff" * (len(content) - 16384)
        spool.write_bytes(content)
    if harm in ("count", "damaged before"):
        manifest = json.loads((backup / "manifest.json").read_text())
        told = {**manifest, "spool_sha256": hashlib.sha256(spool.read_bytes()).hexdigest()}
        (backup / "manifest.json").write_text(json.dumps(told))
    data = tmp_path / "restored"
    with pytest.raises(BackupError, match=said) as refusal:
        put_back(backup, data)
    assert "\n" not in str(refusal.value)
    assert not (data / "clickhouse").exists()
    assert not (data / "spool" / "spool.sqlite").exists()
    assert not (data / "restoring").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(None, "is no backup, or one that was interrupted: it has no manifest.json", id="unfinished"),
        pytest.param({"format": 2, "tachograph": "9.0"}, "has format 2, made by Tachograph 9.0: this is", id="format"),
        pytest.param({"fjles": {}}, r"manifest\.json cannot be read: .*fjles", id="a bit of it"),
        pytest.param({"tables": 7}, r"manifest\.json cannot be read", id="a figure for a table"),
        pytest.param(
            {"files": {"store/metadata/tachograph/a.sql": "0" * 64}},
            r"is damaged: store/metadata/tachograph/a\.sql is missing; copy it anew",
            id="a file is missing",
        ),
        pytest.param(
            {"schema": {"999_new.sql": "0" * 64}},
            r"with another schema \(999_new\.sql\): put it back with that version",
            id="schema",
        ),
    ],
)
def test_what_is_no_whole_backup_of_this_version_is_refused_before_anything_is_made(
    tmp_path: Path, changes: dict[str, Any] | None, said: str
) -> None:
    backup = tmp_path / "backup"
    backup.mkdir()
    if changes is not None:
        manifest = Manifest("2026-11-01T00:00:00+00:00", "0.1.0", "26.9.2.1", {}, {}, 0)
        (backup / "manifest.json").write_text(json.dumps({**manifest._asdict(), **changes}))
    with pytest.raises(BackupError, match=said) as refusal:
        put_back(backup, tmp_path / "data")
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "data").exists()


def test_a_file_is_no_backup(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BackupError, match=r"file is no backup: that is a directory, with a manifest\.json in it"):
        put_back(tmp_path / "file", tmp_path / "data")


INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from collector.backup import making
making._sync = lambda directory: os.kill(os.getpid(), signal.SIGKILL)
import tachograph
sys.argv = ["tachograph", "backup", sys.argv[1]]
tachograph.main()
"""


def test_an_interrupted_backup_is_never_taken_for_one_and_is_replaced(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    addresses, to = restored(made[0], tmp_path), tmp_path / "again"
    command = [sys.executable, "-c", INTERRUPTED, str(to)]
    killed = subprocess.run(command, cwd=ROOT, env=addresses.environment(), timeout=180, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not to.exists()
    assert [path.name for path in tmp_path.glob("again*")] == ["again.unfinished"]
    (tmp_path / "file").write_text("")
    assert "cannot be written" in one_line(tachograph(addresses, "backup", str(tmp_path / "file" / "backup")))
    assert f"{tmp_path / 'none'} is no directory" in one_line(
        tachograph(addresses, "backup", str(tmp_path / "none" / "backup"))
    )
    assert not (tmp_path / "none").exists()
    assert tachograph(addresses, "backup", str(to)).returncode == 0
    assert [path.name for path in tmp_path.glob("again*")] == ["again"]


def test_where_there_is_no_store_that_is_said(tmp_path: Path) -> None:
    addresses = free_addresses(tmp_path / "nothing")
    assert "holds no store: name the collector's --data-dir" in one_line(tachograph(addresses, "retention"))
    assert not (tmp_path / "nothing").exists()

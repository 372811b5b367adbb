"""Files as they are in real life: cut off, empty, something else."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from engine_hooks.adapters.kineto.reading import TraceReader
from engine_hooks.adapters.profile_files import imported
from engine_hooks.adapters.profiles.errors import NothingToImportError, TraceMalformedError, TraceUnreadableError
from engine_hooks.contract.names import GraphKind

LAUNCH = {
    "ph": "X",
    "cat": "cuda_runtime",
    "name": "cudaGraphLaunch",
    "pid": 1,
    "tid": 1,
    "ts": 1,
    "dur": 1,
    "args": {"correlation": 1},
}
EVENTS: list[dict[str, Any]] = [LAUNCH | {"name": "filler", "ts": number} for number in range(3_000)]
WHOLE = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS, "traceName": "t"}).encode()


def fault(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(TraceUnreadableError) as error:
        list(TraceReader(path))
    message = str(error.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(f"{path} ")


def test_header_before_and_behind_the_events(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(
        json.dumps(
            {
                "deviceProperties": [{"id": 0, "name": "V100", "numSms": 80}],
                "traceEvents": [LAUNCH],
                "distributedInfo": {"rank": 3, "world_size": 8, "pg_config": [{"ranks": [0]}]},
                "baseTimeNanoseconds": 1775078550000000000,
            }
        )
    )
    reader = TraceReader(path)
    assert list(reader) == [LAUNCH]
    assert reader.header == {
        "deviceProperties.item.id": [0],
        "deviceProperties.item.name": ["V100"],
        "distributedInfo.rank": [3],
        "distributedInfo.world_size": [8],
        "baseTimeNanoseconds": [1775078550000000000],
    }


def test_progress_counts_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(WHOLE))
    seen: list[int] = []
    assert len(list(TraceReader(path, seen.append))) == len(EVENTS)
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.9999])
def test_cut_off(tmp_path: Path, share: float) -> None:
    size = int(len(WHOLE) * share)
    message = fault(tmp_path, WHOLE[:size])
    whole_events = WHOLE[:size].count(b"}}")
    assert message == (
        f"is cut off after {whole_events:,} whole events, at or before byte {size:,} of its text; nothing was imported"
    )


def test_cut_off_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(WHOLE, mtime=0)
    for size in (12, len(packed) // 2, len(packed) - 4):
        assert fault(tmp_path, packed[:size]).startswith("is cut off after ")


def test_damaged_gzip(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(WHOLE, mtime=0))
    packed[len(packed) // 2] ^= 0xFF
    assert "gzip" in (message := fault(tmp_path, bytes(packed))) or "is not JSON" in message
    assert "nothing was imported" in message


def test_garbage_inside(tmp_path: Path) -> None:
    place = WHOLE.index(b'"ts": 2000')
    message = fault(tmp_path, WHOLE[:place] + b"\xff\xfe garbage" + WHOLE[place:])
    assert message.startswith("is not JSON (lexical error")
    assert "after 2,000 whole events" in message


@pytest.mark.parametrize("content", [b"", b" \n", gzip.compress(b"", mtime=0)])
def test_empty(tmp_path: Path, content: bytes) -> None:
    assert fault(tmp_path, content) == "is empty"


@pytest.mark.parametrize("content", [b"time,kernel\n1,gemm\n", b"<html>", random.Random(1).randbytes(5_000)])
def test_not_json(tmp_path: Path, content: bytes) -> None:
    assert fault(tmp_path, content).startswith("is not JSON")


@pytest.mark.parametrize("content", [b"{}", b'{"resourceSpans": []}', b'{"a": {"traceEvents": [1]}}', b"17", b'"text"'])
def test_json_that_is_no_trace(tmp_path: Path, content: bytes) -> None:
    assert fault(tmp_path, content) == "has no traceEvents: it is not a PyTorch profiler (Kineto) trace"


def test_two_documents_in_one_file(tmp_path: Path) -> None:
    assert fault(tmp_path, WHOLE + WHOLE).startswith("is not JSON")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.json", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(TraceUnreadableError, match=f"cannot be read: {reason}"):
            list(TraceReader(path))


def refusal_of(tmp_path: Path, document: Any) -> str:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    with pytest.raises((NothingToImportError, TraceMalformedError)) as error:
        imported(path, GraphKind.MIXED)
    return str(error.value)


def test_no_launch_at_all(tmp_path: Path) -> None:
    assert "holds no graph launch" in refusal_of(tmp_path, {"traceEvents": []})
    assert "among its 3,000 events" in refusal_of(tmp_path, EVENTS)


def test_no_launch_with_operations(tmp_path: Path) -> None:
    assert "1 graph launches, none of them usable: 1 no device operations" in refusal_of(tmp_path, [LAUNCH])


def test_events_that_are_no_objects(tmp_path: Path) -> None:
    assert "event 1 is not an object" in refusal_of(tmp_path, [LAUNCH, 7])


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"traceEvents":[' + "["])
def test_bottomless_nesting(tmp_path: Path, opening: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text(opening * 50_000)
    with pytest.raises(TraceUnreadableError, match="nested more than 64 deep"):
        list(TraceReader(path))

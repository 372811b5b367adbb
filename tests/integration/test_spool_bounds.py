"""The spool's bounds as senders see them, through both doors, and as they are set."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from collector.service import Collector, CollectorSettings
from tests.fixtures.doors import EXPORT, PROTOBUF
from tests.fixtures.fake_store import request
from tests.fixtures.running import free_addresses, started

NOBODY = "http://127.0.0.1:9/tachograph"
"""A ClickHouse that is away."""
PLENTY = 2**60


@contextmanager
def collecting(data_dir: Path, **settings: int) -> Iterator[Collector]:
    with Collector(CollectorSettings(data_dir, NOBODY)._replace(**settings)) as collector:  # type: ignore[arg-type]
        yield collector


def post(collector: Collector, body: bytes) -> httpx.Response:
    return httpx.post(collector.urls()["otlp_http"], content=body, headers=PROTOBUF, timeout=30)


def fill(collector: Collector) -> int:
    """Send until it is turned away; how many were accepted."""
    for number in range(1_000):
        if post(collector, request(number)).status_code == 429:
            return number
    pytest.fail("no bound")


def test_a_full_spool_over_http_and_grpc(tmp_path: Path) -> None:
    with collecting(tmp_path, spool_bytes_max=20_000, disk_free_bytes_min=0) as collector:
        assert fill(collector) > 2
        answer = post(collector, request(-2))
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0
        assert "TACHOGRAPH_SPOOL_BYTES_MAX" in Status.FromString(answer.content).message
        with grpc.insecure_channel(f"127.0.0.1:{collector.otlp_grpc_port}") as channel:
            with pytest.raises(grpc.RpcError) as refused:
                channel.unary_unary(EXPORT)(request(-3), timeout=30)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            details = dict(refused.value.trailing_metadata())["grpc-status-details-bin"]
            (packed,) = Status.FromString(details).details
            told = RetryInfo()
            assert packed.Unpack(told)
            assert told.retry_delay.seconds > 0


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_spool_that_is_gone_takes_nothing_and_senders_keep_it(tmp_path: Path, made_anew: bool) -> None:
    """What is written to a file that nobody finds again would be lost, and so would be what a sender may not send again."""
    with collecting(tmp_path, disk_free_bytes_min=0) as collector:
        spool = tmp_path / "spool"
        spool.rename(tmp_path / "elsewhere")
        if made_anew:
            shutil.copytree(tmp_path / "elsewhere", spool)
        answer = post(collector, request(1))
        assert (answer.status_code, bool(answer.headers["retry-after"])) == (429, True)
        with grpc.insecure_channel(f"127.0.0.1:{collector.otlp_grpc_port}") as channel:
            with pytest.raises(grpc.RpcError) as refused:
                channel.unary_unary(EXPORT)(request(2), timeout=30)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        door = f"http://127.0.0.1:{collector.otlp_http_port}"
        assert "the spool is gone" in httpx.get(f"{door}/readyz", timeout=30).json()["reasons"]["spool"]
        assert httpx.get(f"{door}/state", timeout=30).json()["spool"]["turned_away_for"] == "spool_gone"
        assert httpx.get(f"{door}/metrics", timeout=30).status_code == 200


def test_no_bound_is_none(tmp_path: Path) -> None:
    with collecting(tmp_path, spool_bytes_max=0, disk_free_bytes_min=0) as collector:
        assert all(post(collector, request(number)).status_code == 200 for number in range(20))


def test_the_disk_that_is_to_stay_free(tmp_path: Path) -> None:
    with collecting(tmp_path, disk_free_bytes_min=PLENTY) as collector:
        answer = post(collector, request(1))
        assert answer.status_code == 429
        assert "TACHOGRAPH_DISK_FREE_BYTES_MIN" in Status.FromString(answer.content).message


def test_the_settings_of_the_command_line(tmp_path: Path) -> None:
    addresses = free_addresses(tmp_path)
    ready = f"http://127.0.0.1:{addresses.otlp_http_port}/healthz"
    flags = ["--clickhouse-url", NOBODY, "--disk-free-bytes-min", "0", "--spool-bytes-max", "3000"]
    with started(addresses, "collect", *flags, ready_url=ready):
        answers = [httpx.post(addresses.otlp_http, content=request(n), headers=PROTOBUF).status_code for n in range(3)]
    assert answers == [200, 429, 429]

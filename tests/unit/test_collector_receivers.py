"""What the doors are made of: bodies within limits, answers, ports."""

import asyncio
import gzip
import os
from collections.abc import AsyncIterator, Iterable

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from hypothesis import given
from hypothesis import strategies as st

from collector.acceptance import MalformedRequestError, Outcome, QueueFullError, StoreUnavailableError
from collector.ports import PortTakenError, bind, host_and_port, port_of
from collector.receivers.answers import RequestTooLargeError, grpc_code, http_status, response_of, status_of
from collector.receivers.http_body import gunzip, read_body


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=4))
def test_gunzip_reads_every_member(parts: list[bytes]) -> None:
    assert gunzip(b"".join(map(gzip.compress, parts)), 1000) == b"".join(parts)


def test_gunzip_holds_the_limit() -> None:
    content = os.urandom(1000)
    assert gunzip(gzip.compress(content, mtime=0), 1000) == content
    with pytest.raises(RequestTooLargeError):
        gunzip(gzip.compress(content, mtime=0), 999)
    with pytest.raises(RequestTooLargeError):
        gunzip(gzip.compress(content[:600], mtime=0) * 2, 1000)


@pytest.mark.parametrize(
    "body", [b"", b"plain", gzip.compress(b"a", mtime=0)[:-1], gzip.compress(b"a", mtime=0) + b"rest", b"\x1f\x8b"]
)
def test_gunzip_refuses_what_is_broken(body: bytes) -> None:
    with pytest.raises(MalformedRequestError):
        gunzip(body, 1000)


async def chunks_of(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def test_read_body_holds_the_limit() -> None:
    assert asyncio.run(read_body(chunks_of([b"ab", b"c"]), 3)) == b"abc"
    with pytest.raises(RequestTooLargeError):
        asyncio.run(read_body(chunks_of([b"ab", b"cd"]), 3))


def test_read_body_gives_up_on_an_endless_one() -> None:
    taken = []

    def endless() -> Iterable[bytes]:
        while True:
            taken.append(1)
            yield b"0123456789"

    with pytest.raises(RequestTooLargeError):
        asyncio.run(read_body(chunks_of(endless()), 10))
    assert len(taken) < 20


def test_success_leaves_partial_success_unset() -> None:
    assert not response_of(Outcome(stored=3, other_spans=2)).HasField("partial_success")


def test_reasons_told_are_bounded() -> None:
    answer = response_of(Outcome(1, {f"reason {n:02}": n + 1 for n in range(30)})).partial_success
    assert answer.rejected_spans == 465
    assert answer.error_message.startswith("465 of 466 graph executions refused: reason 29 (30); reason 28 (29)")
    assert answer.error_message.endswith("; and 20 reasons more")


def test_only_what_may_come_again_carries_retry_info() -> None:
    for error in (QueueFullError("full", 2), StoreUnavailableError("away", 2)):
        (detail,) = status_of(error).details
        info = RetryInfo()
        assert detail.Unpack(info)
        assert info.retry_delay.seconds == 2
    assert not status_of(MalformedRequestError("no")).details
    assert (grpc_code(QueueFullError("")), http_status(QueueFullError(""))) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 429)
    assert (grpc_code(StoreUnavailableError("")), http_status(StoreUnavailableError(""))) == (grpc.StatusCode.UNAVAILABLE, 503)  # fmt: skip


def test_a_taken_port_names_port_and_setting() -> None:
    with (
        bind("127.0.0.1", 0, "X") as taken,
        pytest.raises(PortTakenError, match=rf"port {port_of(taken)} .*set THAT_PORT"),
    ):
        bind("127.0.0.1", port_of(taken), "THAT_PORT")


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(PortTakenError, match="TACHOGRAPH_LISTEN_ADDRESS"):
        bind("192.0.2.1", 0, "X")
    with pytest.raises(PortTakenError, match="TACHOGRAPH_LISTEN_ADDRESS"):
        bind("no such host.invalid", 0, "X")


def test_addresses_in_urls() -> None:
    assert host_and_port("127.0.0.1", 1) == "127.0.0.1:1"
    assert host_and_port("::1", 1) == "[::1]:1"

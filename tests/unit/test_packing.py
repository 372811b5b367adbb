"""Requests compressed: the same again, told from what came as it is, and a tenth as large."""

from hypothesis import given
from hypothesis import strategies as st

from collector.acceptance import ReceivedRequest
from collector.decoding.packing import is_packed, packed, unpacked
from collector.decoding.wire import parsed
from tests.fixtures.contract_cases import SpanCase, request_of


@given(st.binary(max_size=300))
def test_what_is_packed_comes_out_as_it_was_and_is_known(data: bytes) -> None:
    assert unpacked(packed(data)) == data
    assert is_packed(packed(data))


@given(st.lists(st.sampled_from(["one", "another"]), max_size=3))
def test_a_request_is_not_taken_for_a_packed_one(spans: list[str]) -> None:
    request = request_of([SpanCase(name) for name in spans])
    parsed(request)
    assert not is_packed(request)


def test_a_received_request_keeps_its_bytes_compressed() -> None:
    request = request_of([SpanCase("any")] * 100)
    received = ReceivedRequest.of("1", request, 1)
    assert (received.request, received.size) == (request, len(request))
    assert len(received.packed) < len(request) / 10

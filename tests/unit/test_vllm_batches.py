"""What a step of vLLM computes, and what its tokens come to."""

from typing import Any

import pytest

from engine_hooks.adapters.vllm import batches
from engine_hooks.contract.names import FeedbackReason, GraphKind
from tests.fixtures.vllm_fakes import DECODE, Request, Scheduler, config, sampled, scheduled

KINDS = {
    "decode": (scheduled(DECODE), GraphKind.PLAIN_DECODE),
    "verify": (scheduled({"a": 5, "b": 1}, drafts={"a": 4}), GraphKind.SPECULATIVE),
    "new prompt": (scheduled({"a": 64}, new=("a",)), GraphKind.PREFILL),
    "prompt of one token": (scheduled({"a": 1}, new=("a",)), GraphKind.PREFILL),
    "further chunk": (scheduled({"a": 64}, outputs={"a": 0}), GraphKind.PREFILL),
    "prompt beside decode": (scheduled({"a": 64, "b": 1}, new=("a",)), GraphKind.MIXED),
    "prompt beside drafts": (scheduled({"a": 64, "b": 5}, new=("a",), drafts={"b": 4}), GraphKind.MIXED),
    "chunk of one token beside decode": (scheduled(DECODE, outputs={"a": 0, "b": 3}), GraphKind.MIXED),
    "preempted, computed again": (scheduled({"a": 64}, outputs={"a": 9}, resumed=("a",)), GraphKind.PREFILL),
    "preempted before its first token": (
        scheduled({"a": 9, "b": 1}, outputs={"a": 0}, resumed=("a",)),
        GraphKind.MIXED,
    ),
    "its further chunks": (scheduled({"a": 64, "b": 1}, outputs={"a": 9}), GraphKind.MIXED),
    "its further chunks alone": (scheduled({"a": 64}, outputs={"a": 9}), GraphKind.PREFILL),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name: str) -> None:
    output, kind = KINDS[name]
    assert batches.kind_of(output, batches.drafts_scheduled(output)) is kind


@pytest.mark.parametrize(
    ("kind", "tokens", "name"),
    [
        (GraphKind.PLAIN_DECODE, 1, "decode-1"),
        (GraphKind.PLAIN_DECODE, 8, "decode-8"),
        (GraphKind.SPECULATIVE, 9, "verify-16"),
        (GraphKind.PREFILL, 2048, "prefill-2048"),
        (GraphKind.MIXED, 2049, "mixed-4096"),
    ],
)
def test_names_without_a_graph(kind: GraphKind, tokens: int, name: str) -> None:
    assert batches.graph_name_without_graph(kind, tokens) == name


@pytest.mark.parametrize(
    ("kind", "structured", "queued", "speculates", "reason"),
    [
        (GraphKind.PLAIN_DECODE, False, False, False, FeedbackReason.COMPLETION_INPUTS),
        (GraphKind.SPECULATIVE, False, False, True, FeedbackReason.COPIED_PROPOSALS),
        (GraphKind.SPECULATIVE, True, False, True, FeedbackReason.GRAMMAR),
        (GraphKind.MIXED, True, False, True, FeedbackReason.PREFILL),
        (GraphKind.PREFILL, False, True, True, None),
        (GraphKind.SPECULATIVE, False, True, True, None),
        (GraphKind.PLAIN_DECODE, True, True, False, FeedbackReason.GRAMMAR),
    ],
)
def test_feedback(
    kind: GraphKind, structured: bool, queued: bool, speculates: bool, reason: FeedbackReason | None
) -> None:
    output = scheduled(DECODE, structured=structured)
    assert batches.feedback_of(output, kind, queued=queued, speculates=speculates) is reason


def verified(requests: dict[str, Request], invalid: dict[str, int] | None = None, **changes: Any) -> tuple[int, int]:
    scheduler = Scheduler(config(), requests=requests, **changes)
    output = scheduled({"a": 5, "b": 4}, drafts={"a": 4, "b": 3}, invalid=invalid)
    return batches.verified(scheduler, output, sampled(a=3, b=1))


def test_accepted_are_those_sampled_beyond_each_requests_own() -> None:
    assert verified({"a": Request(), "b": Request()}) == (7, 2)


def test_aborted_requests_do_not_count() -> None:
    assert verified({"a": Request(finished=True), "b": Request()}) == (3, 0)
    assert verified({"b": Request()}) == (3, 0)


def test_tokens_of_a_resumed_request_that_are_thrown_away_do_not_count() -> None:
    thrown = Request(num_stale_output_tokens=5, drop_stale_output=True)
    kept = Request(num_stale_output_tokens=5)
    assert verified({"a": thrown, "b": Request()}) == (3, 0)
    assert verified({"a": kept, "b": Request()}) == (7, 2)


def test_drafts_that_a_grammar_refused_beforehand_do_not_count() -> None:
    assert verified({"a": Request(), "b": Request()}, invalid={"a": 1}) == (6, 2)


def test_a_request_that_sampled_nothing_verified_nothing() -> None:
    scheduler = Scheduler(config(), requests={"a": Request()})
    output = scheduled({"a": 5}, drafts={"a": 4})
    assert batches.verified(scheduler, output, sampled(a=0)) == (0, 0)
    no_tokens = sampled(a=0)
    no_tokens.sampled_token_ids = []
    assert batches.verified(scheduler, output, no_tokens) == (0, 0)


def test_a_model_without_a_token_of_its_own_accepts_all_it_samples() -> None:
    assert verified({"a": Request(), "b": Request()}, num_sampled_tokens_per_step=0) == (7, 4)

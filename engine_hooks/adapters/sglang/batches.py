"""What a batch of SGLang's scheduler computes, read off it and its result. The engine's objects are only looked at."""

from collections.abc import Mapping
from typing import Any, Final

from engine_hooks.contract.names import DECODING_KINDS, FeedbackReason, GraphKind
from engine_hooks.scheduler.feedback import feedback_reason

_KINDS: Final[Mapping[str, GraphKind]] = {
    "EXTEND": GraphKind.PREFILL,
    "SPLIT_PREFILL": GraphKind.PREFILL,
    "MIXED": GraphKind.MIXED,
    "TARGET_VERIFY": GraphKind.SPECULATIVE,
    "DECODE": GraphKind.PLAIN_DECODE,
    "DLLM_EXTEND": GraphKind.PLAIN_DECODE,
}
_SHORT: Final[Mapping[GraphKind, str]] = {
    GraphKind.PLAIN_DECODE: "decode",
    GraphKind.SPECULATIVE: "verify",
    GraphKind.PREFILL: "prefill",
    GraphKind.MIXED: "mixed",
}


def kind_of(batch: Any) -> GraphKind | None:
    """What a batch computes; `None` where it runs nothing of its own (`IDLE`, `PREBUILT`, or a mode not known here)."""
    kind = _KINDS.get(batch.forward_mode.name)
    speculates = kind is GraphKind.PLAIN_DECODE and not batch.spec_algorithm.is_none()
    return GraphKind.SPECULATIVE if speculates else kind


def eager_name(batch: Any, kind: GraphKind) -> str:
    """The name of a step that replays no graph: its kind and its tokens, rounded up to a power of two."""
    decodes = kind in DECODING_KINDS
    tokens = batch.batch_size() if decodes else batch.extend_num_tokens or batch.batch_size()
    return f"{_SHORT[kind]}-{1 << max(tokens - 1, 0).bit_length()}"


def feedback_of(batch: Any, kind: GraphKind, *, overlaps: bool) -> FeedbackReason | None:
    """Why the submission after this one waits for its results on the host; `None`: it does not.

    With the overlapping loop results are relayed on the device, and only a grammar waits.
    """
    if overlaps:
        return FeedbackReason.GRAMMAR if batch.has_grammar else None
    return feedback_reason(kind, grammar_lanes=int(batch.has_grammar), completion_inputs=True)


def drafted_and_accepted(result: Any, lanes: int) -> tuple[int, int]:
    """Draft tokens verified and accepted, as SGLang's own metrics count them: to be called once it has processed them."""
    width = getattr(result, "speculative_num_draft_tokens", None)
    if not width:
        return 0, 0
    return max(width - getattr(result, "num_non_draft_tokens_per_req", 1), 0) * lanes, result.num_correct_drafts


def tokens_out(batch: Any) -> int:
    """Tokens given out so far to the requests of a batch."""
    return sum(len(request.output_ids) for request in batch.reqs)

"""What a step of vLLM's scheduler computes, read off its `SchedulerOutput`. The engine's objects are only looked at."""

from typing import Any

from engine_hooks.contract.names import FeedbackReason, GraphKind
from engine_hooks.scheduler.feedback import feedback_reason


def drafts_scheduled(output: Any) -> int:
    """Draft tokens that the step verifies, over all requests."""
    return sum(map(len, output.scheduled_spec_decode_tokens.values()))


def kind_of(output: Any, drafts: int) -> GraphKind:
    """What the step computes. `drafts` is what `drafts_scheduled` gives."""
    prefills = prefill_lanes(output, drafts)
    if prefills:
        return GraphKind.PREFILL if prefills >= len(output.num_scheduled_tokens) else GraphKind.MIXED
    return GraphKind.SPECULATIVE if drafts else GraphKind.PLAIN_DECODE


def prefill_lanes(output: Any, drafts: int) -> int:
    """Requests of the step that compute prompt tokens: new ones, further chunks, preempted ones computed again."""
    cached = output.scheduled_cached_reqs
    lanes = len(output.scheduled_new_reqs) + int(cached.num_output_tokens.count(0))
    if cached.resumed_req_ids:
        lanes += sum(
            tokens > 0 and request in cached.resumed_req_ids
            for request, tokens in zip(cached.req_ids, cached.num_output_tokens, strict=True)
        )
    if lanes or output.total_num_scheduled_tokens == len(output.num_scheduled_tokens) + drafts:
        return lanes
    # Further chunks of a preempted request: it has output tokens, and computes more than one and its drafts.
    spec = output.scheduled_spec_decode_tokens
    return sum(tokens > 1 + len(spec.get(request, ())) for request, tokens in output.num_scheduled_tokens.items())


def graph_name_without_graph(kind: GraphKind, tokens: int) -> str:
    """The name of a step that replays no CUDA graph: its kind and its tokens, rounded up to a power of two.

    vLLM pads to captured sizes in much the same way; so there are a dozen names, not thousands.
    """
    return f"{_SHORT[kind]}-{1 << max(tokens - 1, 0).bit_length()}"


_SHORT = {
    GraphKind.PLAIN_DECODE: "decode",
    GraphKind.SPECULATIVE: "verify",
    GraphKind.PREFILL: "prefill",
    GraphKind.MIXED: "mixed",
}


def feedback_of(output: Any, kind: GraphKind, *, queued: bool, speculates: bool) -> FeedbackReason | None:
    """Why the submission after this step waits for its results on the host; `None`: it does not.

    Args:
        output: the step's `SchedulerOutput`.
        kind: what the step computes.
        queued: the engine core has a batch queue (asynchronous scheduling, pipeline parallelism). Then only a
            grammar waits: its mask for the next token needs the last one.
        speculates: a drafter's proposals go through the host. Without a batch queue they do.
    """
    structured = bool(output.has_structured_output_requests)
    if queued:
        return FeedbackReason.GRAMMAR if structured else None
    return feedback_reason(kind, grammar_lanes=int(structured), copied_proposals=speculates, completion_inputs=True)


def verified(scheduler: Any, output: Any, model_output: Any) -> tuple[int, int]:
    """Drafted and accepted tokens, as vLLM's own metrics count them.

    To be called before `Scheduler.update_from_output`, which cuts `sampled_token_ids` in place where a request
    stops, and takes aborted requests out.
    """
    sampled_ids, index_of = model_output.sampled_token_ids, model_output.req_id_to_index
    requests, own = scheduler.requests, scheduler.num_sampled_tokens_per_step
    invalid = output.num_invalid_spec_tokens or {}
    drafted = accepted = 0
    for request_id, drafts in output.scheduled_spec_decode_tokens.items():
        request = requests.get(request_id)
        if request is None or not drafts or request.is_finished():
            continue
        if request.num_stale_output_tokens > 0 and request.drop_stale_output:
            continue  # preempted and resumed while this step ran: vLLM throws its tokens away
        sampled = len(sampled_ids[index_of[request_id]]) if sampled_ids else 0
        if sampled or not own:
            drafted += len(drafts) - invalid.get(request_id, 0)
            accepted += max(sampled - own, 0)
    return drafted, accepted


def tokens_emitted(outputs: Any) -> int:
    """Tokens that `Scheduler.update_from_output` gave out to all clients, cut where requests stop."""
    return sum(len(one.new_token_ids) for client in outputs.values() for one in client.outputs)

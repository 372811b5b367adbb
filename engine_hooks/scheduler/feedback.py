"""Which executions the next submission has to wait for."""

from engine_hooks.contract.names import FeedbackReason, GraphKind


def feedback_reason(
    kind: GraphKind,
    *,
    grammar_lanes: int = 0,
    host_stopped_lanes: int = 0,
    copied_proposals: bool = False,
    completion_inputs: bool = False,
) -> FeedbackReason | None:
    """Why the submission after this execution needs its results on the host first; `None`: it does not.

    Args:
        kind: What the graph computes. Prefill (alone or mixed in) and state operations always need it.
        grammar_lanes: Lanes whose next token a grammar on the host constrains.
        host_stopped_lanes: Lanes that the host may stop, by a stop string for instance.
        copied_proposals: The next proposals are copied from this execution's results by the host.
        completion_inputs: The next graph takes inputs that this completion makes.
    """
    if kind in {GraphKind.PREFILL, GraphKind.MIXED}:
        return FeedbackReason.PREFILL
    if kind == GraphKind.STATE:
        return FeedbackReason.STATE
    if grammar_lanes:
        return FeedbackReason.GRAMMAR
    if host_stopped_lanes:
        return FeedbackReason.HOST_STOP
    if copied_proposals:
        return FeedbackReason.COPIED_PROPOSALS
    return FeedbackReason.COMPLETION_INPUTS if completion_inputs else None

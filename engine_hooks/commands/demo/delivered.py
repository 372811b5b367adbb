"""Whether what a run of the demo recorded reached a collector: a run whose record nobody took has failed."""

from collections.abc import Mapping

from engine_hooks.recorder.losses import LossReason, in_words
from engine_hooks.torch_demo.errors import AllLostError, PartLostError


def raise_for_lost(endpoint: str, delivered: int, losses: Mapping[LossReason, int]) -> None:
    """Say in one line how much of the record is missing, and what to do.

    Args:
        endpoint: Where it was sent.
        delivered: Records that were acknowledged.
        losses: Records that were not, by reason.

    Raises:
        AllLostError: some were lost and none was acknowledged.
        PartLostError: some were lost.
    """
    lost = sum(losses.values())
    if lost and not delivered:
        raise AllLostError(f"none of the executions reached {endpoint}: start a collector there")
    if lost:
        raise PartLostError(
            f"a part of the record is missing at {endpoint}: of {delivered + lost:,} executions {in_words(losses)}; "
            "see to the collector there, and run it again"
        )

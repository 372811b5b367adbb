"""Why an execution was not measured."""

import logging
from collections.abc import Mapping
from enum import StrEnum

logger = logging.getLogger(__name__)


class DeviceLoss(StrEnum):
    """Why an execution was not measured. Each leaves a gap in `graph_sequence`."""

    POOL_EXHAUSTED = "pool_exhausted"
    """More executions in flight, or finished and not yet polled, than there are event pairs."""
    NEVER_COMPLETED = "never_completed"
    """Its end event had not fired when the execution was older than the bound."""
    SOURCE_FAILED = "source_failed"
    """The device's library raised when an event was recorded, asked or read."""
    LAUNCH_FAILED = "launch_failed"
    """The engine's own submission raised."""
    RECORD_FAILED = "record_failed"
    """What takes the records raised, or the engine's fields are none of the contract's."""


class Losses:
    """Counts losses by reason; says the first of each in the log, the rest only in the count."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(DeviceLoss, 0)

    def count(self, reason: DeviceLoss, error: BaseException | None = None) -> None:
        """One more execution lost."""
        self._counts[reason] += 1
        if self._counts[reason] == 1:
            logger.warning("a graph execution was not measured (%s)%s", reason, f": {error}" if error else "")

    def by_reason(self) -> Mapping[DeviceLoss, int]:
        """A copy of the counts."""
        return dict(self._counts)

"""Why a record is lost."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class LossReason(StrEnum):
    """Why a record was not delivered, as far as this end knows."""

    BUFFER_FULL = "buffer_full"
    """The collector was away or slow for longer than the buffer lasts: the oldest record made room."""
    EXPORT_FAILED = "export_failed"
    """The collector refused the batch as a whole, in a way that does not pass; or an exporter handed in failed."""
    REFUSED = "refused"
    """The collector took the batch but not this record, by OTLP's partial success; its reason is logged."""
    NOT_ENCODABLE = "not_encodable"
    """OTLP cannot carry the record: see `encoder.RequestEncoder.span`."""
    STOPPED = "stopped"
    """Recorded after `stop`, or not acknowledged when its timeout passed; the collector may have taken it by then, or may yet."""


_IN_WORDS: Final[Mapping[LossReason, str]] = {
    LossReason.BUFFER_FULL: "because the buffer was full",
    LossReason.EXPORT_FAILED: "because sending failed",
    LossReason.REFUSED: "refused by the collector",
    LossReason.NOT_ENCODABLE: "that OTLP cannot carry",
    LossReason.STOPPED: "not acknowledged by the end",
}


def in_words(losses: Mapping[LossReason, int]) -> str:
    """How many were lost and why, for a log: `237 not acknowledged by the end`; '' where none were."""
    return ", ".join(f"{count:,} {_IN_WORDS[reason]}" for reason, count in losses.items() if count)

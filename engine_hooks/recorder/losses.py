"""Why a record is lost."""

from enum import StrEnum


class LossReason(StrEnum):
    """Why a record was not delivered."""

    BUFFER_FULL = "buffer_full"
    """The collector was away or slow for longer than the buffer lasts."""
    EXPORT_FAILED = "export_failed"
    """A batch was given up: its timeout passed, or the collector refused it as a whole."""
    REFUSED = "refused"
    """The collector took the batch but not this record, by OTLP's partial success; its reason is logged."""
    NOT_ENCODABLE = "not_encodable"
    """OTLP cannot carry the record: see `encoder.RequestEncoder.span`."""
    STOPPED = "stopped"
    """Recorded after `stop`, or still waiting when its timeout passed."""

"""Why a record is lost."""

from enum import StrEnum


class LossReason(StrEnum):
    """Why a record was not delivered."""

    BUFFER_FULL = "buffer_full"
    """The collector was away or slow for longer than the buffer lasts: the oldest record made room."""
    EXPORT_FAILED = "export_failed"
    """The collector refused the batch as a whole, in a way that does not pass; or an exporter handed in failed."""
    REFUSED = "refused"
    """The collector took the batch but not this record, by OTLP's partial success; its reason is logged."""
    NOT_ENCODABLE = "not_encodable"
    """OTLP cannot carry the record: see `encoder.RequestEncoder.span`."""
    STOPPED = "stopped"
    """Recorded after `stop`, or not delivered when its timeout passed."""

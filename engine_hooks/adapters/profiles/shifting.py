"""`--shift-to`: where a profile's times are moved to."""

from datetime import UTC, datetime
from typing import Final, NamedTuple

from engine_hooks.adapters.profiles.errors import WrongShiftError

SHIFT_TO_NOW: Final = "now"
SHIFT_TO_BASE: Final = "base"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
YEARS: Final = range(1971, 2262)
"""Those that signed 64-bit nanoseconds since 1970 have, with room for a profile before its end."""


class Shift(NamedTuple):
    """Where a profile's times are moved to. Neither set: they stay as they are."""

    end_at: int | None = None
    """Unix ns of the end of the file's last execution."""
    by_base: bool = False
    """Add what the file says that its times count from."""


UNMOVED: Final = Shift()


def shift_of(text: str | None, now_ns: int) -> Shift:
    """A shift from `--shift-to`: nothing, `now`, `base`, or an ISO 8601 time (UTC where it names no zone).

    Raises:
        WrongShiftError: it is none of these, or a time that no span can have.
    """
    if text is None or text == SHIFT_TO_BASE:
        return Shift(by_base=text == SHIFT_TO_BASE)
    if text == SHIFT_TO_NOW:
        return Shift(now_ns)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise WrongShiftError(
            f"--shift-to {text}: give {SHIFT_TO_NOW}, {SHIFT_TO_BASE} or a time such as 2026-11-29T12:00:00Z"
        ) from error
    if moment.year not in YEARS:
        raise WrongShiftError(f"--shift-to {text}: give a time of the years {YEARS[0]} to {YEARS[-1]}")
    elapsed = moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH
    return Shift((elapsed.days * 86_400 + elapsed.seconds) * 1_000_000_000 + elapsed.microseconds * 1_000)

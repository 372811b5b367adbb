"""Why a receiver did not take alerts, or a silence: one line that shows no secret.

NotDeliveredError             3
├── ReceiverAwayError         3  it may take the same later: not reached, too slow, overloaded, failing
├── ReceiverRefusedError      3  it answered, and would refuse the same again
└── NotKeptError              2  what was told, or a silence, cannot be written below the data directory
    └── NoRoomError           1  for the disk is full
"""

from queries.alerts.notifying import NotDeliveredError


class ReceiverAwayError(NotDeliveredError):
    """Worth another attempt."""


class ReceiverRefusedError(NotDeliveredError):
    """Another attempt with the same content would fail in the same way."""


class NotKeptError(NotDeliveredError):
    """The data directory cannot be written: a wrong setting, as it is to every command."""

    exit_code = 2


class NoRoomError(NotKeptError):
    """The disk of the data directory is full."""

    exit_code = 1

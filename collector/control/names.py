"""The names of the orders that a control door takes."""

from typing import Final

TELL_RETENTION: Final = "retention/tell"
CHANGE_RETENTION: Final = "retention/change"
COUNT_EXPIRING: Final = "retention/count"
BACK_UP: Final = "backup"
TELL_STORE: Final = "store"

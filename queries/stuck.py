"""When a cell is stuck in plain decode: the catalogue's definition, for what judges cells in Python."""

import functools
from typing import NamedTuple

from queries.catalogue import find


class StuckBounds(NamedTuple):
    """The bounds of a verdict of stuck, as the question `stuck_plain` has them by default."""

    plain_fraction: float
    """A cell is stuck when its plain fraction is above this."""
    decoding_ns: float
    """No verdict of stuck before a cell has this much ordinary decoding."""

    def stuck(self, plain_ns: int, decoding_ns: int, *, can_speculate: bool) -> bool:
        """Whether a cell is stuck.

        Args:
            plain_ns: Wall time of its ordinary plain decode.
            decoding_ns: Wall time of all its ordinary decoding, which may be 0.
            can_speculate: Whether its engine has a speculative graph.
        """
        return can_speculate and decoding_ns >= self.decoding_ns and plain_ns > self.plain_fraction * decoding_ns


@functools.cache
def stuck_bounds() -> StuckBounds:
    """Read from the head of the SQL, where the server's side of the verdict stands."""
    default = {parameter.name: parameter.default for parameter in find("stuck_plain").parameters}
    return StuckBounds(float(default["stuck_above"]), float(default["minimum_decoding_s"]) * 1e9)

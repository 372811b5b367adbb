"""An arm of which there are no cells, and which arms there are."""

import difflib
from collections.abc import Collection
from typing import Final

from engine_hooks.commands.terminal import shortened
from queries.compare.errors import NothingToCompareError

NAMED_MAX: Final = 5


def check_arms(arms: tuple[str, str], there: Collection[str]) -> None:
    """Refuse an arm that is not there, and name those that are.

    Args:
        arms: The two to compare.
        there: Arms that have cells; '' is none.

    Raises:
        NothingToCompareError: one of the two is not among them.
    """
    for arm in arms:
        if arm not in there:
            raise NothingToCompareError(f"no cells of arm {shortened(arm)!r}: {others_words(arm, there)}")


def others_words(wanted: str, there: Collection[str]) -> str:
    """The arms that are called nearly so; else the first, and how many more there are."""
    names = sorted(arm for arm in there if arm)
    if not names:
        return "no cell of this time names an arm (cell.arm)"
    if close := difflib.get_close_matches(wanted, names):
        return f"did you mean {' or '.join(map(shortened, close))}?"
    more = f" and {len(names) - NAMED_MAX:,} more" if len(names) > NAMED_MAX else ""
    return f"there {'are' if names[1:] else 'is'} {', '.join(map(shortened, names[:NAMED_MAX]))}{more}"

"""Refusals that name the flags of a command, as somebody in front of a page knows them."""

import re
from collections.abc import Callable
from typing import Final

from dashboards.words.texts import escaped

Found = re.Match[str]
ON_A_PAGE: Final[tuple[tuple[re.Pattern[str], Callable[[Found], str]], ...]] = (
    (
        re.compile(r"leave (?P<label>\w+) out of --by"),
        lambda found: f"deselect “{found['label'].replace('_', ' ')}” under “One row for each”",
    ),
    (re.compile(r"narrow the time by --from and --to"), lambda _: "choose a shorter time range"),
    (re.compile(r": it cannot be simulated; --form exact needs none"), lambda _: ""),
)
"""What is said to whoever types a command, and what to do on a page instead."""


def refusal_words(refusal: str) -> str:
    """Why there is nothing to show, and what to do on the page, as Markdown."""
    for said, instead in ON_A_PAGE:
        refusal = said.sub(instead, refusal)
    return escaped(refusal)

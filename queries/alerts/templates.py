"""Texts with values of a row in them: `{plain_fraction:.0%} of the decoding was plain`. Names of columns, and nothing else."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from string import Formatter
from typing import Any, Final
from urllib.parse import quote

_FORMAT: Final = re.compile(r",?(\.\d)?[df%]?")
_FORMATTER: Final = Formatter()
UNKNOWN: Final = "unknown"


def names_in(template: str) -> frozenset[str]:
    """The columns that a text names.

    Raises:
        ValueError: a brace without its partner, a field that is no plain name, or a format other than `.1f`, `,d`, `.0%`.
    """
    names = set()
    for _, name, format_, conversion in _FORMATTER.parse(template):
        if name is None:
            continue
        if not name.isidentifier() or conversion:
            raise ValueError(f"{{{name}}} is no plain name of a column")
        if not _FORMAT.fullmatch(format_ or ""):
            raise ValueError(f"{{{name}:{format_}}}: formats are like .1f, .0%, d and ,d")
        names.add(name)
    return frozenset(names)


def filled(template: str, row: Mapping[str, Any]) -> str:
    """The text with the row's values; an empty value reads `unknown`."""
    return _filled(template, row, str)


def filled_link(template: str, row: Mapping[str, Any]) -> str:
    """The same for an address: values are escaped."""
    return _filled(template, row, lambda text: quote(text, safe=""))


def _filled(template: str, row: Mapping[str, Any], escape: Callable[[str], str]) -> str:
    pieces = []
    for literal, name, format_, _ in _FORMATTER.parse(template):
        pieces.append(literal)
        if name is not None:
            pieces.append(escape(shown(row.get(name), format_ or "")))
    return "".join(pieces)


def shown(value: Any, format_: str = "") -> str:
    """One value as text."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, datetime):
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return f"{aware:%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return format(value, format_) if format_ else f"{value:,.3f}" if isinstance(value, float) else str(value)

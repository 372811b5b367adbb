"""Where a text ceases to be JSON, and whether it is only cut off there."""

import json
import re
from typing import Final, NamedTuple

_OF_NUMBERS: Final = ("", "-", ".", "e", "e-", "e+", "E", "E-", "E+")
"""What a number that is cut off ends in."""
_LITERALS: Final = ("true", "false", "null")
_ESCAPE: Final = re.compile("u[0-9a-fA-F]{0,4}")


class Fault(NamedTuple):
    """The first fault of a text. Line and column count from 1, columns in characters."""

    line: int
    column: int
    what: str


def fault_of(document: bytes) -> Fault | None:
    """The first fault; none where it is JSON, or nested too deeply to tell."""
    text = document.decode("utf-8", "surrogateescape").rstrip("\r\n")
    try:
        json.loads(text)
    except json.JSONDecodeError as wrong:
        if _is_cut_off(text, wrong):
            line = text.count("\n") + 1
            return Fault(line, len(text) - (text.rfind("\n") + 1) + 1, "the JSON is cut off")
        return Fault(wrong.lineno, wrong.colno, f"no JSON: {wrong.msg}")
    except (ValueError, RecursionError):
        pass
    return None


def _is_cut_off(text: str, wrong: json.JSONDecodeError) -> bool:
    """Whether something could follow that makes it JSON."""
    rest = text[wrong.pos :].strip()
    return (
        wrong.msg.startswith("Unterminated string")
        or (wrong.msg.startswith("Invalid \\u") and _ESCAPE.fullmatch(rest) is not None)
        or rest in _OF_NUMBERS
        or any(literal.startswith(rest) for literal in _LITERALS)
    )

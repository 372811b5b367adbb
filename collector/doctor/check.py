"""One thing looked at, and what was found."""

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    """Nothing is lost yet, or nobody can tell; somebody should look."""
    FAULT = "fault"
    """Something is lost, will be, or does not answer."""


class Check(NamedTuple):
    """What was looked at, what was found, and what to do about it."""

    name: str
    verdict: Verdict
    finding: str
    advice: str = ""
    """What to do; empty where nothing is to be done."""


class ToldErrors:
    """Errors of others that checks have told: one and the same is told by the first, and the rest name that one."""

    def __init__(self) -> None:
        self._told_by: dict[str, str] = {}

    def told(self, check: str, error: str) -> str:
        """How a check of that name tells an error, after what it says itself: `: it is away`, or `, as storing says`."""
        first = self._told_by.setdefault(error, check)
        return f": {error}" if first == check else f", as {first} says"


def ok(name: str, finding: str) -> Check:
    """All is well."""
    return Check(name, Verdict.OK, finding)


def warning(name: str, finding: str, advice: str) -> Check:
    """Somebody should look."""
    return Check(name, Verdict.WARNING, finding, advice)


def fault(name: str, finding: str, advice: str) -> Check:
    """Something is wrong."""
    return Check(name, Verdict.FAULT, finding, advice)

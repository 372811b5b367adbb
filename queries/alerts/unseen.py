"""What else is wrong with a rule of wrong form, so that whoever writes it is told everything at once.

Its faulty fields are set aside, what is required in their place is filled in, and the rest is looked at as if it were whole.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic import ValidationError, model_validator

from queries.alerts.lint import complaints, unknown_query
from queries.alerts.rule import Rule

_FILLED_IN: Final[dict[str, Any]] = {
    "alert": "Unnamed",
    "when": [{"column": "unnamed", "above": 0}],
    "severity": "info",
    "identity": ["unnamed"],
    "annotations": {"summary": "unnamed"},
    "runbook": "unnamed",
}
"""For what is required."""


class _Parts(Rule):
    """A rule each of whose fields is well by itself."""

    @model_validator(mode="after")
    def _whole(self) -> "_Parts":
        return self


def unseen(document: dict[str, Any], faulty: Sequence[Sequence[str]], interval_s: float) -> Iterator[tuple[str, str]]:
    """Where, and what: faults that those of the form hide.

    Args:
        document: The rule as it is written.
        faulty: Where its form is wrong; an empty place is the rule as a whole.
        interval_s: How often rules are evaluated.
    """
    unknown = {field: says for field in ("query", "live", "suspects") if (says := unknown_query(document.get(field)))}
    yield from unknown.items()
    mended, aside = _mended(document, faulty)
    try:
        parts = _Parts.model_validate(mended)
    except ValidationError:
        return
    if all(faulty):
        yield from (("", fault) for fault in parts.faults() if not aside & {"query", "watches"} or "query" not in fault)
    if (parts.query is None) == (parts.watches is None):
        return
    try:
        found = list(complaints(parts, interval_s))
    except ValueError:  # A text that names no plain columns, which is told as such.
        return
    for complaint in found:
        field = complaint.field.split(".")[0]
        if complaint.is_error and field not in aside and field not in unknown:
            yield complaint.field, complaint.says


def _mended(document: dict[str, Any], faulty: Sequence[Sequence[str]]) -> tuple[dict[str, Any], set[str]]:
    """The document without what is faulty, and the fields of which nothing is left."""
    mended = dict(document)
    aside: set[str] = set()
    for name in {place[0] for place in faulty if place}:
        within = {place[1] for place in faulty if len(place) > 1 and place[0] == name}
        left = _without(mended.get(name), within)
        mended.pop(name, None)
        if left:
            mended[name] = left
            continue
        aside.add(name)
        if name in _FILLED_IN:
            mended[name] = _FILLED_IN[name]
    return mended, aside


def _without(value: Any, parts: set[str]) -> Any:
    """A list or mapping without these parts; nothing of what has none."""
    if parts and isinstance(value, list):
        return [one for n, one in enumerate(value) if str(n) not in parts]
    if parts and isinstance(value, dict):
        return {key: one for key, one in value.items() if str(key) not in parts}
    return None

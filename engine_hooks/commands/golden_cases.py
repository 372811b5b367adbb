"""The format of the golden cases (docs/embedding.md), and what is wrong with a case, in words.

EngineHooksError
└── GoldenFileError   a file or case that is not in the format
"""

import json
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError

from engine_hooks.contract.names import Purpose
from engine_hooks.errors import EngineHooksError

SHOWN_MAX: Final = 60
"""Characters of a wrong value."""

Text = Annotated[str, Field(strict=True)]
YesOrNo = Annotated[bool, Field(strict=True)]
TimeNs = Annotated[int, Field(ge=0, lt=2**63)]
InstantNs = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class GoldenFileError(EngineHooksError):
    """A file or case that is not in the format of the golden cases. Its text is one clear line."""


class Event(BaseModel):
    """One finished execution. Times are integer nanoseconds."""

    graph: Text
    gpu_ns: TimeNs
    wall_ns: TimeNs
    """The idle gap before it + its GPU time."""
    queued: YesOrNo
    needs_completion_feedback: YesOrNo
    purpose: Purpose
    now_ns: InstantNs
    """When its end was observed."""


class Check(BaseModel):
    """An estimate that is asked for, right after event `after_event`, from 0 on."""

    after_event: int
    graph: Text
    now_ns: InstantNs


class Case(BaseModel):
    """Events in order, and the checks between them."""

    id: Text
    events: list[Event]
    checks: list[Check]


def case_of(given: Any) -> Case:
    """A case as `json.loads` gives it, read.

    Raises:
        GoldenFileError: it is not in the format; the text says where in it, and what.
    """
    try:
        case = Case.model_validate(given)
    except ValidationError as wrong:
        raise GoldenFileError(_in_words(wrong)) from wrong
    for number, check in enumerate(case.checks):
        if not 0 <= check.after_event < len(case.events):
            last = f"the last is {len(case.events) - 1}, from 0 on" if case.events else "it has none"
            raise GoldenFileError(f"check {number}: there is no event {check.after_event} to come after: {last}")
    return case


def _in_words(wrong: ValidationError) -> str:
    """The first thing that is wrong: `event 0: purpose should be 'ordinary' …, not 'oops'`."""
    first = wrong.errors()[0]
    match first["loc"]:
        case ():
            where = "it"
        case (str(field),):
            where = field
        case (str(field), int(number)):
            where = f"{field.removesuffix('s')} {number}"
        case (str(field), int(number), *rest):
            where = f"{field.removesuffix('s')} {number}: {rest[0]}"
        case loc:
            where = ".".join(map(str, loc))
    if first["type"] == "missing":
        return f"{where} is missing"
    what = first["msg"].removeprefix("Input ")
    if first["type"].startswith("int_"):
        what = "should be a whole number"
    if first["type"] in ("model_type", "dict_type"):
        what = "should be an object"
    return f"{where} {what}, not {_shown(first['input'])}"


def _shown(value: Any) -> str:
    """A value as JSON writes it, cut where it is long."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"

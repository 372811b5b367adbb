"""Where JSON ceases to be JSON: every beginning of a document is one that is cut off."""

import json

import pytest

from collector.conformance.json_faults import Fault, fault_of

DOCUMENT = json.dumps(
    {"a": [1, -2.5, {"b": True, "c": None}, 1e-30], "d": "x\\y\n\u00e9", "e": {}, "f": False, "g": [[], "\u2028"]},
    indent=1,
)


def test_every_beginning_is_cut_off_at_its_end() -> None:
    assert fault_of(DOCUMENT.encode()) is None
    for end in range(1, len(DOCUMENT)):
        beginning = DOCUMENT[:end].rstrip("\n")
        lines = beginning.split("\n")
        assert fault_of(DOCUMENT[:end].encode()) == Fault(len(lines), len(lines[-1]) + 1, "the JSON is cut off"), end


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": 1]', Fault(1, 8, "no JSON: Expecting ',' delimiter")),
        ('{"a":\n tru}', Fault(2, 2, "no JSON: Expecting value")),
        ('{"a": "\\u12"}', Fault(1, 9, "no JSON: Invalid \\uXXXX escape")),
        ('{"a": 1}\n\n{"a": 2}', Fault(3, 1, "no JSON: Extra data")),
        ("7", None),
        ("[" * 100_000, None),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(text: str, fault: Fault | None) -> None:
    assert fault_of(text.encode()) == fault

"""Which spans of time are asked for cells to choose from."""

import pandas as pd
import pytest

from dashboards.parts.cell_chooser import RECENTLY, first_found
from dashboards.reading.answers import Answer

SOME = Answer(pd.DataFrame({"cell": ["1"]}), at=pd.Timestamp("2026-11-01", tz="UTC").to_pydatetime())
NONE = Answer(at=SOME.at)
UNKNOWN = Answer(problem="away")


@pytest.mark.parametrize(
    ("answers", "told", "asked"),
    [
        ([SOME, SOME], SOME, 1),
        ([NONE, SOME], SOME, 2),
        ([NONE, NONE], NONE, 2),
        ([UNKNOWN, SOME], UNKNOWN, 1),
    ],
    ids=["an hour has some", "only the day has some", "neither", "nobody answers"],
)
def test_a_day_is_asked_only_where_an_hour_has_none(answers: list[Answer], told: Answer, asked: int) -> None:
    spans: list[dict[str, object]] = []

    def ask(limit: int, **span: object) -> Answer:
        assert limit == 20
        spans.append(span)
        return answers[len(spans) - 1]

    assert first_found(ask, RECENTLY) is told
    assert spans == list(RECENTLY[:asked])

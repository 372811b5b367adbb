"""What people noted about the engines that a page shows."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd
import streamlit as st

from dashboards.charts.notes import SIGN
from dashboards.parts.notices import Known, viewer_zone
from dashboards.questions.ranges import TimeRange, bounds
from dashboards.reading.answers import Answer, answer
from dashboards.rows import rows_of
from dashboards.words.texts import escaped, utc_text, with_code
from queries.annotations.marks import Mark, mark_of

MARKS_MAX = 200
TOLD_MAX = 3
ENGINE = ["host_name", "service_instance_id", "engine_package"]


class Noted(NamedTuple):
    """The marks of a stretch of time."""

    marks: tuple[Mark, ...]
    """The latest first."""
    told: Answer


def noted_about(cells: pd.DataFrame, time_range: TimeRange) -> Noted:
    """The marks that concern any engine of these cells.

    Args:
        cells: Rows that name their engines.
        time_range: Up to now.
    """
    told = answer("annotations", limit=MARKS_MAX, **bounds(time_range))
    engines = list(cells[ENGINE].drop_duplicates().itertuples(index=False, name=None))
    marks = [mark_of(row._asdict()) for row in rows_of(told.rows)]
    return Noted(tuple(mark for mark in marks if any(mark.concerns(*engine) for engine in engines)), told)


def say_noted(noted: Noted, *beside: Known) -> None:
    """The latest marks in words, for those who do not hover; and what is wrong, where they alone cannot be read.

    Args:
        noted: The marks.
        beside: What the page shows them with, whose problems it says itself.
    """
    if noted.told.problem and not any(one.problem for one in beside):
        st.caption(f"What was noted could not be read: {with_code(noted.told.problem)}")
    if noted.marks:
        st.caption(f"{SIGN} " + " · ".join(marks_in_words(noted.marks[:TOLD_MAX])), unsafe_allow_html=True)


def marks_in_words(marks: Iterable[Mark]) -> list[str]:
    """Each mark with its time in the viewer's zone."""
    zone = viewer_zone()
    return [
        f'<span title="{utc_text(pd.Timestamp(mark.at))}">{mark.at.astimezone(zone):%Y-%m-%d %H:%M}</span>'
        f" {escaped(mark.text)}" + (f" ({escaped(mark.about)})" if mark.about else "")
        for mark in marks
    ]

"""The story of a cell, and all of one execution, as the Cell page shows them."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dashboards.rows import Row
from dashboards.words.markdown import short
from dashboards.words.texts import escaped
from queries.catalogue import Column, find
from queries.postmortem.story import Chapter

SENTENCES_MAX = 6
"""Of one finding; the Markdown file has all of them."""


def chapter_text(chapter: Chapter) -> str:
    """One finding with its confidence, and what shows it, as Markdown."""
    shown = chapter.sentences[:SENTENCES_MAX]
    lines = [f"**{escaped(chapter.title)}**", "", *(f"- {escaped(sentence.text)}" for sentence in shown)]
    left = len(chapter.sentences) - len(shown)
    return "\n".join([*lines, *([f"- and {left:,} more in the file below"] if left else [])])


def execution_table(record: Row) -> str:
    """Every field that is recorded of an execution, under the name that its attribute and its column share."""
    columns = find("record").columns
    rows = [
        field_row(column, getattr(record, column.name)) for column in columns if recorded(getattr(record, column.name))
    ]
    return "\n".join(["| Field | Value | Meaning |", "| :-- | :-- | :-- |", *rows])


def fields_missing(record: Row) -> list[str]:
    """Fields that the engine did not record."""
    return [column.name for column in find("record").columns if not recorded(getattr(record, column.name))]


def field_row(column: Column, value: Any) -> str:
    """One field."""
    unit = f" {column.unit}" if column.unit and column.unit != "time" else ""
    return f"| {escaped(column.name)} | {value_text(value)}{escaped(unit)} | {escaped(column.meaning)} |"


def recorded(value: Any) -> bool:
    """Whether a field says anything."""
    if isinstance(value, (str, dict)) or not pd.api.types.is_scalar(value):
        return len(value) > 0
    return not pd.isna(value)


def value_text(value: Any) -> str:
    """A value as a person reads it, as Markdown; names by their two ends."""
    if isinstance(value, dict):
        return ", ".join(f"{short(str(name))} {value_text(entry)}" for name, entry in value.items())
    if isinstance(value, pd.Timestamp):
        return escaped(f"{value:%Y-%m-%d %H:%M:%S.%f} UTC")
    if isinstance(value, str) or pd.api.types.is_bool(value):
        return short(str(value))
    if not pd.api.types.is_scalar(value):
        entries: Sequence[Any] = list(value)
        return ", ".join(value_text(entry) for entry in entries)
    return escaped(f"{value:,}" if pd.api.types.is_integer(value) else f"{value:,.6g}")

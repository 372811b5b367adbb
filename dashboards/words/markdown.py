"""Tables as Markdown: real table cells and links, so that keyboards and screen readers find them.

Shown by `st.markdown(…, unsafe_allow_html=True)`, for the hovering: every text of an engine is `words.escaped`.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from html import escape
from typing import NamedTuple

import pandas as pd

from dashboards.words.texts import NAME_LETTERS_MAX, clock, escaped, two_ends, utc_text

LINE_LETTERS_MAX = 28
"""Of a name that is not broken into lines."""


class Column(NamedTuple):
    """The head of a column."""

    title: str
    is_figure: bool = False
    """Set flush right, so that digits stand below each other."""


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """A table; what stands in its cells is Markdown already."""
    lines = [
        [column.title for column in columns],
        ["--:" if column.is_figure else ":--" for column in columns],
        *rows,
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def without_empty(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> tuple[list[Column], list[list[str]]]:
    """The columns in which any row says something, and the rows of these."""
    kept = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]


def since(instant: pd.Timestamp, zone: tzinfo, now: datetime) -> str:
    """An instant in the viewer's zone, with UTC on hover; nothing where it is not known."""
    return "" if pd.isna(instant) else f'<span title="{utc_text(instant)}">{clock(instant, zone, now)}</span>'


def way(words: str, address: str, hovered: str = "") -> str:
    """A link to a page of these dashboards, which opens in its place: a link of Markdown's opens a tab of its own.

    Args:
        words: What stands there, as Markdown.
        address: Relative to the dashboards' root.
        hovered: What is said on hover.
    """
    title = f' title="{in_cell(hovered)}"' if hovered else ""
    return f'<a href="{in_cell(address)}" target="_self"{title}>{words}</a>'


def in_cell(text: str) -> str:
    """Text within an attribute, which may stand in a table's cell: a bar would end that."""
    return escape(text).replace("|", "&#124;")


def short(name: str) -> str:
    """A name of anybody's making, of a long one its two ends, with the whole on hover: unbroken, one of 2,000 letters
    would leave the columns beside it no room."""
    shown, hovered = ends_of(name, NAME_LETTERS_MAX)
    return f"<span{hovered}>{shown}</span>" if hovered else shown


def prose(text: str, width_min_rem: int = 11) -> str:
    """Sentences, as Markdown, which are broken into lines on a telephone too, where other cells are not."""
    style = f"display: inline-block; min-width: {width_min_rem}rem; white-space: normal"
    return f'<span style="{style}">{text}</span>' if text else ""


def one_line(name: str) -> str:
    """A name that is not broken into lines, of a long one its two ends, with the whole on hover."""
    shown, hovered = ends_of(name, LINE_LETTERS_MAX)
    return f'<span style="white-space: nowrap"{hovered}>{shown}</span>' if shown else ""


def ends_of(name: str, letters_max: int) -> tuple[str, str]:
    """A name as Markdown, of one of more than `letters_max` its two ends; and the attribute that tells the whole of it on
    hover, '' where it is shown whole."""
    whole, shown = " ".join(name.split()), two_ends(name, letters_max)
    return escaped(shown), "" if shown == whole else f' title="{in_cell(whole)}"'

"""Answers and the catalogue for the eye: rich tables with units, numbers to the right, times in ms."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment, Segments
from rich.table import Table

from engine_hooks.commands.counting import counted
from engine_hooks.commands.terminal import output_console, shortened
from queries.catalogue import Column, Query

PROSE_WIDTH = 160
"""Columns of characters of what is written in sentences, where there is no terminal to say how wide it is."""
WIDTH_MEASURED_MAX = 1000
LABEL_WIDTH_MAX = 40
"""Columns of characters on a terminal: longer names fold."""
COLUMNS_MIN = 3
ROWS_MEASURED = 200
"""How many rows tell how wide a table is: measuring is slower than printing."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
VERDICTS_BAD = ("stuck", "inflated")


def grouped(digits: int) -> Callable[[Any], str]:
    """Numbers with thousands apart and so many decimals."""
    return lambda value: f"{value:,.{digits}f}"


def label(value: Any) -> str:
    """Anything without a unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list | tuple):
        text = ", ".join(map(str, value))
        return text if len(text) <= LABEL_WIDTH_MAX else text[: LABEL_WIDTH_MAX - 1] + "…"
    return str(value)


def milliseconds(value: Any) -> str:
    """Nanoseconds as ms."""
    return f"{value / 1e6:,.3f}"


def moment(value: Any) -> str:
    """An instant to the millisecond."""
    return f"{value:%Y-%m-%d %H:%M:%S.%f}"[:-3] if isinstance(value, datetime) else str(value)


WRITERS: dict[str, Callable[[Any], str]] = {
    "": label,
    "time": moment,
    "ns": milliseconds,
    "s": grouped(3),
    "fraction": grouped(3),
    "ratio": grouped(3),
    "%": grouped(1),
    "tokens/s": grouped(1),
}


def cell_text(column: Column, value: Any) -> str:
    """One value as a table shows it; missing ones stay empty."""
    if value is None:
        return ""
    if column.name in VERDICTS_BAD and value:
        return f"[bold red]{column.name}[/]"
    if column.unit in WRITERS:
        return shortened(WRITERS[column.unit](value)).replace("[", r"\[")
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def heading(column: Column) -> str:
    """A column's name with the unit that the table shows."""
    if column.unit == "ns":
        return f"{column.name.removesuffix('_ns')}\nms"
    return f"{column.name}\n{'UTC' if column.unit == 'time' else column.unit}".rstrip("\n")


BY_FORMAT = "--format csv, json or parquet"


def answer_table(query: Query, rows: Sequence[Mapping[str, Any]], by: str = BY_FORMAT) -> bytes:
    """The answer's main columns: those that are empty in every row are left out, and the last that do not fit.

    Args:
        by: What gives all columns, exact; '' where the caller says it itself.
    """
    by_name = {column.name: column for column in query.columns}
    shown = [by_name[name] for name in query.table if any(row[name] not in (None, "") for row in rows)]
    count = len(shown)
    width = output_console().width
    while count > COLUMNS_MIN and width_of(table_of(shown[:count], rows[:ROWS_MEASURED])) > width:
        count -= 1
    table = table_of(shown[:count], rows)
    table.caption = counted(len(rows), "row")
    if by:
        table.caption += f"; {by} gives {all_columns(query)}"
    return printed(table, width)


def all_columns(query: Query) -> str:
    """What a table leaves out."""
    return f"all {counted(len(query.columns), 'column')}, exact"


def table_of(shown: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    """These columns of these rows."""
    table = Table()
    for column in shown:
        is_label = column.unit == ""
        table.add_column(
            heading(column),
            justify="left" if is_label or column.unit == "time" else "right",
            overflow="fold",
            max_width=LABEL_WIDTH_MAX if is_label and output_console().is_terminal else None,
        )
    for row in rows:
        table.add_row(*(cell_text(column, row[column.name]) for column in shown))
    return table


@dataclass(frozen=True)
class Fitting:
    """A table where it fits a terminal without anything cut or folded, else another form of the same."""

    wide: Table
    narrow: RenderableType
    may_fold: int = 0
    """By so many columns of characters it may be too wide: what folds then is prose."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = width_of(self.wide) - self.may_fold
        yield self.wide if needed <= options.max_width else self.narrow


def catalogue_table(queries: Iterable[Query]) -> bytes:
    """Every query with its question and its parameters."""
    table = Table(
        caption="tachograph query NAME [--param NAME=VALUE]… [--format table|csv|json|parquet] [--output FILE]"
    )
    for title in ("query", "question", "parameters"):
        table.add_column(title, overflow="fold")
    for query in queries:
        table.add_row(query.name, query.question, ", ".join(parameter.name for parameter in query.parameters))
    return printed(table)


def catalogue_json(queries: Iterable[Query]) -> bytes:
    """The catalogue for scripts: what can be asked and what it answers, not how."""
    entries = [
        {name: value for name, value in asdict(query).items() if name not in ("sql", "rows")} for query in queries
    ]
    return json.dumps(entries, indent=1).encode() + b"\n"


def width_of(table: Table) -> int:
    """How wide a table is with nothing folded."""
    console = Console(file=io.StringIO(), width=WIDTH_MEASURED_MAX)
    return console.measure(table).maximum


def prose_width() -> int:
    """Columns of characters: of the terminal, or else what is read with ease."""
    return min(output_console().width, PROSE_WIDTH) if not sys.stdout.isatty() else output_console().width


def printed(table: RenderableType, width: int | None = None) -> bytes:
    """The table as text, coloured on a terminal, plain elsewhere; `width` is that of prose where none is given."""
    is_terminal = sys.stdout.isatty()
    text = io.StringIO()
    console = Console(
        file=text,
        width=width or prose_width(),
        force_terminal=is_terminal,
        color_system="auto" if is_terminal else None,
    )
    console.print(Segments(map(harmless, console.render(table))))
    return text.getvalue().encode()


def visible(text: str) -> str:
    """Text with its control characters spelt out: names come from senders, and a terminal obeys what it is sent."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def harmless(segment: Segment) -> Segment:
    """A piece of an answer; line ends stay."""
    if segment.control:
        return segment
    return Segment("\n".join(map(visible, segment.text.split("\n"))), segment.style)

"""Tables of the pages as Markdown: real links and real table cells, so that keyboards and screen readers find them."""

from datetime import UTC, datetime, tzinfo

import pandas as pd

from dashboards.links import cell_address
from dashboards.rows import Row, rows_of
from dashboards.words.cells import is_whole
from dashboards.words.markdown import Column, one_line, short, table, way, without_empty
from dashboards.words.markdown import since as hovered
from dashboards.words.texts import clock, engine_names, percent, short_instance, utc_text

STUCK_ROWS_MAX = 20
"""Stuck cells listed; `tachograph query stuck_plain` has all of them."""

STUCK_COLUMNS = (
    Column("Cell"),
    Column("Plain, % of decoding", True),
    Column("Engine"),
    Column("Cause"),
    Column("Arm"),
    Column("Since"),
    Column("Longest stretch, s", True),
    Column("Tokens/s", True),
    Column("Best speculative graph"),
    Column("Gain from it, %", True),
)
"""What matters stands first: a telephone shows three columns, and scrolls to the others."""


def stuck_table(stuck: pd.DataFrame, zone: tzinfo) -> str:
    """Rows of the query `stuck_plain`, each linked to its cell."""
    now = datetime.now(UTC)
    return table(*without_empty(STUCK_COLUMNS, [stuck_row(row, zone, now) for row in rows_of(stuck)]))


def stuck_row(row: Row, zone: tzinfo, now: datetime) -> list[str]:
    """One stuck cell."""
    shown = clock(row.started_at, zone, now) if str(row.cell).isdigit() else row.cell
    since = row.started_at if pd.isna(row.plain_since) else row.plain_since
    return [
        way(short(shown), cell_address(row.service_instance_id, row.cell), f"plain since {utc_text(since)}"),
        percent(row.plain_fraction).removesuffix(" %"),
        engine(row),
        cause(row),
        short(row.cell_arm),
        hovered(since, zone, now),
        figure(row.plain_stretch_s, ".1f"),
        figure(row.tokens_per_s, ",.0f"),
        short(row.best_speculative_graph),
        figure(row.gain_percent, "+.1f"),
    ]


def engine(row: Row) -> str:
    """An engine by its names, and what tells it from others of its host."""
    return f"{' · '.join(map(short, engine_names(row)))} / {one_line(short_instance(row))}"


def cause(row: Row) -> str:
    """Why a cell is stuck: inflated estimates as soon as they are found, and that it was not they once the whole cell was judged."""
    if row.inflated:
        return "inflated estimates"
    if not is_whole(row):
        return "not judged yet"
    return "not known" if pd.isna(row.gain_percent) else "not the estimates"


def figure(value: float, form: str) -> str:
    """A number, or nothing where it is not known."""
    return "" if pd.isna(value) else format(value, form)


def stretches_table(stretches: pd.DataFrame, zone: tzinfo) -> str:
    """Rows of the query `fleet_stretches`, each linked to its worst cell."""
    now = datetime.now(UTC)
    heads = [Column(name) for name in ("From", "Engine", "Arm")]
    figures = [Column(name, True) for name in ("Cells", "Stuck", "Plain in them, s", "Tokens/s")]
    rows = [
        [
            way(
                clock(row.started_at, zone, now),
                cell_address(row.service_instance_id, row.cell),
                f"from {utc_text(row.started_at)}: opens its worst cell",
            ),
            engine(row),
            short(row.cell_arm),
            f"{row.cells:,}",
            f"{row.cells_stuck:,}",
            figure(row.plain_stuck_s, ",.0f"),
            figure(row.tokens_per_s, ",.0f"),
        ]
        for row in rows_of(stretches)
    ]
    return table(*without_empty([*heads, *figures], rows))

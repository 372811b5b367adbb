"""Stories of stored cells: one by its name, or the costliest of a range."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, NamedTuple

from queries.annotations.marks import mark_of
from queries.errors import RefusedError, UnknownCellError
from queries.findings.diagnosis import diagnose
from queries.findings.findings import QueryUse
from queries.findings.record import BEFORE_NS
from queries.findings.stored import neighbourhood_of
from queries.postmortem.story import Noted, Story, story_of
from queries.record import CellExecutions, executions_of, instant
from queries.runner import run

CELLS_DIAGNOSED_MAX: Final = 40
"""Flagged cells of a range that are looked at, newest first; each takes about a tenth of a second."""
NOTED_BEFORE: Final = timedelta(hours=1)
"""Marks are told of a cell from so long before it."""
MARKS_MAX: Final = 20
"""Marks told at most, the latest."""
FLAGS: Final = ("stuck", "inflated")


class ToldCell(NamedTuple):
    """A cell and its story."""

    recorded: CellExecutions
    story: Story


class ToldRange(NamedTuple):
    """The flagged cells of a range."""

    told: tuple[ToldCell, ...]
    """The costliest first; of those that lost equally, the newest."""
    cells: int
    """Cells of the range."""
    flagged: int
    """Those that are stuck in plain decode or judged by inflated estimates."""


def told(url: str, cell: str, engine: str = "") -> ToldCell:
    """The story of one cell.

    Args:
        url: ClickHouse.
        cell: As the query `cells` names it.
        engine: Its `service_instance_id`; '' where only one engine has such a cell.

    Raises:
        UnknownCellError, AmbiguousCellError, QueriesError: as `executions_of`.
    """
    recorded = executions_of(url, engine, cell, BEFORE_NS / 1e9)
    diagnosis = diagnose(neighbourhood_of(url, recorded))
    # What came before has served the diagnosis, and is four times as long as the cell.
    recorded = recorded._replace(before=())
    return ToldCell(recorded, story_of(recorded, diagnosis, noted_about(url, recorded)))


def noted_about(url: str, recorded: CellExecutions) -> Noted:
    """The marks that concern a cell. A store that has none, or shows none, is no reason to tell nothing.

    Raises:
        UnreachableError: no ClickHouse answers.
    """
    engine = recorded.engine
    began = recorded.executions[0].started_at
    ended = max(one.started_at + one.duration_ns for one in recorded.executions)
    use = QueryUse(
        "annotations",
        {
            "from": (instant(began) - NOTED_BEFORE).isoformat(),
            "to": instant(ended).isoformat(),
            "service_instance_id": engine.service_instance_id,
            "host": engine.host_name,
            "package": engine.engine_package,
            "of_one": "true",
            "limit": str(MARKS_MAX),
        },
    )
    try:
        rows = run(use.name, url, "rows", **use.parameters)
    except RefusedError as wrong:
        return Noted(shown_by=(use,), problem=str(wrong))
    return Noted(tuple(map(mark_of, reversed(rows))), (use,))


def told_range(
    url: str,
    engine: str = "",
    from_: str | None = None,
    to: str | None = None,
    progress: Callable[[list[dict[str, Any]]], Any] = iter,
) -> ToldRange:
    """The stories of the flagged cells of a range; where none is flagged, that of the newest cell.

    Args:
        url: ClickHouse.
        engine: Its `service_instance_id`; '' is any.
        from_, to: The range, as queries take it; `None`: as `cells` has it.
        progress: Iterates over the cells that are looked at, and shows how far it is.

    Raises:
        UnknownCellError: no cell is stored there.
        QueriesError: as `run`.
    """
    cells = run("cells", url, "rows", service_instance_id=engine, **{"from": from_, "to": to})
    if not cells:
        of = f" of engine {engine}" if engine else ""
        raise UnknownCellError(f"no cell{of} is stored in that range: `tachograph query engines` lists what is")
    # A clock that is ahead makes no cell newer than its arrival.
    cells.sort(key=lambda cell: min(cell["ended_at"], cell["last_received_at"]), reverse=True)
    flagged = [cell for cell in cells if any(cell[flag] for flag in FLAGS)]
    looked_at = (flagged or cells[:1])[:CELLS_DIAGNOSED_MAX]
    stories = [told(url, cell["cell"], cell["service_instance_id"]) for cell in progress(looked_at)]
    stories.sort(key=lambda one: (-one.story.diagnosis.tokens_lost, -one.story.began_ns))
    return ToldRange(tuple(stories), len(cells), len(flagged))

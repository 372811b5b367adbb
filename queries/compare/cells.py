"""The cells of a comparison, as rows of the query `cells` tell of them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from engine_hooks.contract.names import (
    CELL_CONCURRENCY,
    ENGINE_NAME,
    ENGINE_PACKAGE,
    ENGINE_RECIPE,
    ENGINE_VERSION,
    HOST_NAME,
    SCHEDULER_COST_MODEL,
    SERVICE_NAME,
    column_of,
)
from queries.errors import CallError

LABELS: Final[dict[str, str]] = {
    "host": column_of(HOST_NAME),
    "package": column_of(ENGINE_PACKAGE),
    "recipe": column_of(ENGINE_RECIPE),
    "concurrency": column_of(CELL_CONCURRENCY),
    "engine": column_of(ENGINE_NAME),
    "version": column_of(ENGINE_VERSION),
    "service": column_of(SERVICE_NAME),
    "cost_model": column_of(SCHEDULER_COST_MODEL),
}
"""What cells can be grouped by, and the column that holds it."""


class Cell(NamedTuple):
    """One cell of one arm."""

    instance: str
    cell: str
    arm: str
    position: int | None
    """Place in the benchmark's order."""
    started_at: datetime
    elapsed_s: float
    executions: int
    executions_lost: int
    tokens_per_s: float | None
    """Every token emitted / elapsed time: rounds whose drafts were all rejected are in it."""
    plain_fraction: float | None
    stuck: bool
    labels: dict[str, str]
    """By the short names of `LABELS`."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"{self.cell} of {self.labels['host'] or self.instance}"


def cells_of(rows: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """The cells in rows of the query `cells`."""
    return [
        Cell(
            instance=row["service_instance_id"],
            cell=row["cell"],
            arm=row["cell_arm"],
            position=row["cell_position"],
            started_at=row["started_at"],
            elapsed_s=row["elapsed_s"],
            executions=row["executions"],
            executions_lost=row["executions_lost"],
            tokens_per_s=row["tokens_per_s"],
            plain_fraction=row["plain_fraction"],
            stuck=row["stuck"],
            labels={label: "" if row[column] is None else str(row[column]) for label, column in LABELS.items()},
        )
        for row in rows
    ]


def labels_named(text: str) -> tuple[str, ...]:
    """The labels of a comma-separated list.

    Raises:
        CallError: one that cells do not have, or none at all.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in LABELS]
    if unknown or not names:
        raise CallError(f"--by {text}: " + f"cells have {', '.join(LABELS)}" + ("" if names else "; name at least one"))
    return names

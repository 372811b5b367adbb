"""Where the evaluator keeps its state: whoever reads or silences beside it has to look in the same data directory."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queries.alerts.errors import NotEvaluatedError
from queries.client import shown
from queries.commands.alerts.settings import PlaceSettings, state_directory
from queries.errors import UnreachableError

if TYPE_CHECKING:
    from queries.alerts.book import Entry, Identity


@dataclass(frozen=True)
class Place:
    """The data directory of an evaluator, and the Alertmanagers that keep silences too."""

    data_dir: Path
    alertmanager_urls: str


def place_of(settings: PlaceSettings) -> Place:
    """The data directory that somebody named; else, of the running collector's and the default one, that on which an
    evaluator looked last.

    Raises:
        NotEvaluatedError: no evaluator ever ran there.
        AlertStateError: it cannot be told.
    """
    if settings.named_data_dir:
        return Place(_evaluated([settings.named_data_dir]), settings.alertmanager_urls)
    told = told_data_dir(settings.collector_url)
    candidates = dict.fromkeys([*([told] if told else []), settings.data_dir])
    return Place(_evaluated([*candidates]), settings.alertmanager_urls)


def place_or_warning(settings: PlaceSettings) -> Place | None:
    """The same; None, and a warning, where no evaluator ever ran: for those to whom Alertmanager's silences matter."""
    try:
        return place_of(settings)
    except NotEvaluatedError as nowhere:
        typer.echo(f"warning: {nowhere}", err=True)
        return None


def told_data_dir(collector_url: str) -> Path | None:
    """Where the collector there says that its data lies, which it tells its own machine only; None where it does not.

    Args:
        collector_url: With a reader's user and password, where they are needed.
    """
    from queries.alerts.sources import collector_state  # noqa: PLC0415 (slow to load)

    try:
        return collector_state(shown(collector_url), collector_url, _data_dir_in)
    except (UnreachableError, ValueError):
        return None


def standing_at(place: Place) -> "tuple[dict[Identity, Entry], dict[str, float]]":
    """The alerts that are not inactive, and the evaluator's counters.

    Raises:
        NotEvaluatedError: it has not looked yet.
        AlertStateError: they cannot be read.
    """
    from queries.alerts.memory import remembered  # noqa: PLC0415 (as above)

    entries, counters = remembered(state_directory(place))
    if "evaluated_at" not in counters:
        raise NotEvaluatedError(f"the evaluator on {place.data_dir} has not looked yet: ask again")
    return entries, counters


def _data_dir_in(state: Mapping[str, Any]) -> Path | None:
    told = state.get("data_dir")
    return Path(told) if told else None


def _evaluated(directories: Sequence[Path]) -> Path:
    from queries.alerts.memory import has_begun, remembered  # noqa: PLC0415 (as above)

    def looked_at(directory: Path) -> float:
        # Who has begun and not looked yet has just begun.
        return remembered(directory / "alerts")[1].get("evaluated_at", math.inf)

    begun = [one for one in directories if has_begun(one / "alerts")]
    if not begun:
        where = " or ".join(str(one) for one in directories)
        raise NotEvaluatedError(
            f"no evaluator of alerts ever ran on {where}: name the --data-dir of `tachograph up` or `alerts run`"
        )
    return max(begun, key=looked_at) if len(begun) > 1 else begun[0]

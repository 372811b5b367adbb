"""`tachograph alerts silence`: for a while, alerts with these labels wake nobody.

Kept in Alertmanager where one is configured, and here for the webhooks and Apprise, which have no silences.
"""

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from queries.alerts.errors import NotEvaluatedError
from queries.commands.alerts.place import Place, place_of, place_or_warning, standing_at
from queries.commands.alerts.settings import PlaceSettings, SilencingSettings
from queries.errors import CallError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from queries.alerts.delivery.silences import Silence

ALERTMANAGER = "alertmanager"
OWN = "tachograph"
WHY_WIDTH_MIN = 20


def create(
    settings: SilencingSettings,
    matchers: Annotated[
        list[str],
        typer.Argument(help="NAME=VALUE, NAME!=VALUE, NAME=~REGEX or NAME!~REGEX; all must fit.", metavar="MATCHER..."),
    ],
    comment: Annotated[str, typer.Option(help="Why, for those who wonder that nothing rings.")],
    duration: Annotated[str, typer.Option("--for", help="For how long from now: 90m, 2h30m, 1d.")] = "2h",
    author: Annotated[str, typer.Option(help="Who silences.", show_default="the user who runs it")] = "",
) -> None:
    """Silence alerts with these labels from now on. It ends by itself. Prints its id, with where it is kept.

    Exit codes: 0 made; 1 nobody evaluates where it would be kept; 2 a wrong call, or an alertname that no rule has; 3 no
    Alertmanager answers.
    """
    from queries.alerts.delivery.receivers import (  # noqa: PLC0415 -- --help stays quick
        alertmanager_silences,
        has_people,
        own_silences,
    )
    from queries.alerts.delivery.silences import check_alertnames, new_silence  # noqa: PLC0415
    from queries.alerts.loading import load_rules  # noqa: PLC0415

    now = datetime.now(UTC)
    silence = new_silence(matchers, duration, comment, author or getpass.getuser(), now)
    check_alertnames(
        silence, [rule.alert for rule in load_rules(settings.alert_rules, settings.alert_interval_s).rules]
    )
    alertmanager = alertmanager_silences(settings)
    keeps_own = has_people(settings) or not alertmanager
    place = place_of(settings) if keeps_own else place_or_warning(settings)
    if alertmanager:
        typer.echo(f"{alertmanager.create(silence)} {ALERTMANAGER}")
    if keeps_own and place:
        typer.echo(f"{own_silences(place).create(silence, now)} {OWN}")
        if place.data_dir != settings.data_dir:
            typer.echo(f"it is kept in {place.data_dir}, the running collector's data directory", err=True)
    if place:
        _warn_of_nothing(place, silence)


def _warn_of_nothing(place: Place, silence: "Silence") -> None:
    """Say so where it silences no alert of now, or nobody can tell yet."""
    try:
        entries, _ = standing_at(place)
    except NotEvaluatedError as unknown:
        typer.echo(f"warning: whether it matches an alert is unknown: {unknown}", err=True)
        return
    current = [entry for entry in entries.values() if not entry.standing.ended]
    if not any(silence.mutes(entry.labels) for entry in current):
        typer.echo("warning: it matches no alert of now; `tachograph alerts list` shows which there are", err=True)


def list_silences(
    settings: PlaceSettings,
    everything: Annotated[bool, typer.Option("--all", help="Those that ended within five days as well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List the silences, by their end.

    Exit codes: 0 listed; 1 nobody evaluates where they would be kept; 3 no Alertmanager answers.
    """
    now = datetime.now(UTC)
    found = [
        (where, one) for where, one in _all(settings, _read_from(settings)) if everything or one.state(now) != "expired"
    ]
    if as_json:
        import json  # noqa: PLC0415

        told = [one.model_dump(mode="json", by_alias=True) | {"where": where, "state": one.state(now)} for where, one in found]  # fmt: skip
        typer.echo(json.dumps(told))
        return
    _print_table(found, now)


def expire(
    settings: PlaceSettings,
    ids: Annotated[list[str], typer.Argument(help="Ids, or how they begin.", metavar="ID...")],
) -> None:
    """End silences now.

    Exit codes: 0 ended; 1 nobody evaluates where they would be kept; 2 a wrong call; 3 no Alertmanager answers.
    """
    from queries.alerts.delivery.receivers import alertmanager_silences, own_silences  # noqa: PLC0415

    now = datetime.now(UTC)
    place = _read_from(settings)
    running = [(where, one) for where, one in _all(settings, place) if one.state(now) != "expired"]
    for wanted in ids:
        where, silence = _the_one(wanted, running)
        if where == OWN and place:
            own_silences(place).expire(silence.id, now)
        elif alertmanager := alertmanager_silences(settings):
            alertmanager.expire(silence.id)
        typer.echo(f"{silence.id} {where} ended")


def _read_from(settings: PlaceSettings) -> Place | None:
    """Where our own lie; None, and a warning, where nobody evaluates and Alertmanager keeps some."""
    from queries.alerts.delivery.receivers import alertmanager_silences  # noqa: PLC0415

    return place_or_warning(settings) if alertmanager_silences(settings) else place_of(settings)


def _all(settings: PlaceSettings, place: Place | None) -> "list[tuple[str, Silence]]":
    from queries.alerts.delivery.receivers import alertmanager_silences, own_silences  # noqa: PLC0415

    alertmanager = alertmanager_silences(settings)
    found = [(ALERTMANAGER, silence) for silence in alertmanager.all()] if alertmanager else []
    found += [(OWN, silence) for silence in own_silences(place).all()] if place else []
    return sorted(found, key=lambda one: one[1].ends_at)


def _the_one(wanted: str, running: "list[tuple[str, Silence]]") -> "tuple[str, Silence]":
    fitting = [one for one in running if wanted and one[1].id.startswith(wanted)]
    if len(fitting) != 1:
        how_many = f"{len(fitting)} silences" if fitting else "no silence that still runs"
        raise CallError(
            f"{how_many} with an id that begins with {wanted!r}: `tachograph alerts silence list` names them"
        )
    return fitting[0]


def _print_table(found: "list[tuple[str, Silence]]", now: datetime) -> None:
    from rich.console import Console  # noqa: PLC0415

    from engine_hooks.commands.terminal import WIDTH_ELSEWHERE, shortened  # noqa: PLC0415
    from queries.terminal import Fitting  # noqa: PLC0415

    console = Console()
    if not console.is_terminal:
        console.width = WIDTH_ELSEWHERE
    longest = max((len(shortened(one.comment)) for _, one in found), default=0)
    console.print(Fitting(_table_of(found, now), _blocks(found, now), max(0, longest - WHY_WIDTH_MIN)))


def _table_of(found: "list[tuple[str, Silence]]", now: datetime) -> "Table":
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from engine_hooks.commands.terminal import shortened  # noqa: PLC0415

    table = Table(caption="--json shows whole ids; times in UTC", caption_justify="left")
    for heading in ("id", "where", "state", "matchers", "ends", "by"):
        table.add_column(heading, no_wrap=True)
    table.add_column("why", overflow="fold", min_width=WHY_WIDTH_MIN)
    for where, one in found:
        matchers = "\n".join(shortened(str(matcher)) for matcher in one.matchers)
        ends = f"{one.ends_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        names = (matchers, ends, shortened(one.created_by), shortened(one.comment))
        table.add_row(one.id[:8], where, one.state(now), *map(escape, names))
    return table


def _blocks(found: "list[tuple[str, Silence]]", now: datetime) -> "RenderableType":
    """A few lines for each silence. Names stay whole, to be copied, in lines of their own."""
    from rich.console import Group  # noqa: PLC0415
    from rich.padding import Padding  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from engine_hooks.commands.terminal import shortened  # noqa: PLC0415

    lines: list[RenderableType] = []
    for where, one in found:
        ends = f"{one.ends_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        lines.append(Text(f"{one.id[:8]}  {where}, {one.state(now)}, ends {ends} UTC", style="bold"))
        about = (*map(str, one.matchers), f"by {one.created_by}", one.comment)
        lines += [Padding(Text(shortened(text), overflow="fold"), (0, 0, 0, 2), expand=False) for text in about]
    return Group(*lines, Text("--json shows whole ids", style="italic"))

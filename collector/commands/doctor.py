"""`tachograph doctor`: is everything stored that was received, and will it stay so?"""

from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status

from collector.doctor.settings import DoctorSettings
from engine_hooks.commands.terminal import output_console


def doctor(
    settings: DoctorSettings,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: every check as JSON.")] = False,
) -> None:
    """Look over a running collector: its doors, its ledger against ClickHouse, retention, disk and clocks.

    Exit code 1 where something is at fault; a warning is none.
    """
    # gRPC and ClickHouse's client take a second to import: other commands do without them.
    from collector.doctor.check import Verdict  # noqa: PLC0415
    from collector.doctor.doors import Doors  # noqa: PLC0415
    from collector.doctor.examination import examine  # noqa: PLC0415
    from collector.doctor.report import as_json as json_of  # noqa: PLC0415
    from collector.doctor.report import print_table, worst  # noqa: PLC0415
    from collector.store.clickhouse import split_url  # noqa: PLC0415

    split_url(settings.clickhouse_url)  # The driver would ask localhost in place of what is no URL.
    console = output_console()
    with Status("looking", console=Console(stderr=True)):
        checks = list(examine(Doors(settings), settings.clickhouse_url))
    if as_json:
        typer.echo(json_of(checks))
    else:
        print_table(checks, console)
    if worst(checks) is Verdict.FAULT:
        raise typer.Exit(1)

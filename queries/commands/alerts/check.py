"""`tachograph alerts check`: are the rules well?"""

from pathlib import Path
from typing import Annotated

import typer

from queries.commands.alerts.settings import RuleSettings


def check(
    settings: RuleSettings,
    *,
    directory: Annotated[
        Path | None, typer.Argument(help="Look at the rules in this directory, instead of those that would run.")
    ] = None,
) -> None:
    """Look for all that is wrong with the rules: form, unknown queries and columns, thresholds on the wrong side, missing
    runbooks.

    Exit codes: 0 all are well; 1 at least one is refused; 2 no such directory.
    """
    from queries.alerts.loading import load_rules, read_directory  # noqa: PLC0415 (slow to load)

    interval_s = settings.alert_interval_s
    rules = read_directory(directory, interval_s) if directory else load_rules(settings.alert_rules, interval_s)
    for refused in rules.refused:
        typer.echo(f"refused  {refused}")
    for warning in rules.warnings:
        typer.echo(f"warning  {warning}")
    count = len(rules.loaded)
    typer.echo(f"{count} {'rule is' if count == 1 else 'rules are'} well, {rules.rules_refused} refused")
    if rules.refused:
        raise typer.Exit(1)

"""`tachograph alerts test`: one rule on stored data, at one instant."""

import shlex
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from engine_hooks.commands.terminal import output_console
from queries.commands.alerts.listing import told
from queries.commands.alerts.settings import EvaluatingSettings
from queries.commands.output import write

if TYPE_CHECKING:
    from queries.alerts.rule import Rule
    from queries.catalogue import Query


def try_rule(
    settings: EvaluatingSettings,
    rule: Annotated[str, typer.Argument(help="Its name.")],
    *,
    at: Annotated[str, typer.Option(metavar="TIME", help="The instant: ISO 8601, now, or -2h.")] = "now",
) -> None:
    """Evaluate one rule as of an instant: the rows it looks at, what each shows, and the state that follows.

    A rule with a `for` is looked at as often as that takes, up to the instant.

    Exit codes: 0 nothing fires; 10 something does; 1 unknown: nothing reported then; 2 no such rule, a time in the future, or the collector stores elsewhere; 3 no ClickHouse answers; 4 ClickHouse refused the query.
    """
    from queries.alerts.conditions import judge  # noqa: PLC0415 (slow to load)
    from queries.alerts.loading import load_rules  # noqa: PLC0415
    from queries.alerts.looking_back import as_of, past_instant_of, unknown  # noqa: PLC0415
    from queries.alerts.sources import StoredSource  # noqa: PLC0415
    from queries.catalogue import find  # noqa: PLC0415
    from queries.terminal import answer_table  # noqa: PLC0415

    chosen = load_rules(settings.alert_rules, settings.alert_interval_s).named(rule)
    source = StoredSource(settings.clickhouse_url, settings.rows_url)
    instant = past_instant_of("--at", at)
    looked = as_of(chosen, source, instant, settings.alert_interval_s, is_now=at == "now")
    console = output_console()
    if chosen.query and looked.rows:
        query = find(chosen.query)
        write(answer_table(query, looked.rows, ""), None)
        console.print(whole_answer(query, chosen, instant), soft_wrap=True, markup=False)
    for row in looked.rows:
        cell = [f"cell {row['cell']}"] if row.get("cell") and "cell" not in chosen.identity else []
        which = ", ".join([*(str(row[name]) for name in chosen.identity), *cell]) or chosen.alert
        console.print(f"{which}: {judge(chosen.when, row)}", soft_wrap=True, markup=False)
    for entry in looked.entries:
        console.print(f"-> {entry.standing.state}: {told(entry)}", soft_wrap=True, markup=False, style="bold")
    if any(entry.standing.fires for entry in looked.entries):
        raise typer.Exit(10)
    if why := unknown(chosen, looked.rows):
        console.print(f"unknown: {why}", soft_wrap=True)
        raise typer.Exit(1)
    if not looked.rows:
        console.print("clear: its query, which lists nothing but troubles, has no rows then", soft_wrap=True)


def whole_answer(query: "Query", rule: "Rule", at: datetime) -> str:
    """What gives every column of the rows that a rule looked at: its query, asked as of that instant."""
    from queries.alerts.sources import values_of  # noqa: PLC0415 (slow to load)
    from queries.terminal import BY_FORMAT, all_columns  # noqa: PLC0415

    values = values_of(rule, at, is_now=False)
    texts = (
        f"{name}={value.isoformat(timespec='milliseconds') if isinstance(value, datetime) else value}"
        for name, value in values.items()
        if name != "limit"
    )
    parameters = "".join(f" --param {shlex.quote(text)}" for text in texts)
    return f"{all_columns(query)}: tachograph query {query.name}{parameters} {BY_FORMAT}"

"""`tachograph alerts list`: the rules, and where each alert stands."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from rich.markup import escape
from rich.table import Table

from engine_hooks.commands.counting import counted
from engine_hooks.commands.terminal import folding, output_console, shortened
from queries.alerts.delivery.settings import SilenceSettings
from queries.alerts.errors import NotEvaluatedError
from queries.commands.alerts.place import place_of, standing_at
from queries.commands.alerts.settings import StandingSettings
from queries.errors import QueriesError

if TYPE_CHECKING:
    from queries.alerts.book import Entry
    from queries.alerts.delivery.silences import Silence
    from queries.alerts.delivery.standing import ReceiverState
    from queries.alerts.loading import Rules

_SHOWN_FIRST: Final = ("firing", "no_data", "pending", "resolved", "gone")


_SEVERITIES: Final = ("critical", "warning", "info")
Shown = Literal["firing", "no_data", "pending", "resolved", "gone"]


def list_alerts(
    settings: StandingSettings,
    *,
    rule: Annotated[str, typer.Option(help="Only alerts of this rule.")] = "",
    state: Annotated[Shown | None, typer.Option(help="Only alerts in this state.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show how many alerts there are, rules, alerts that are not inactive, and receivers, as the evaluator last left them: that of the data directory
    that is named, or else of the running collector's.

    Exit codes: 0 shown; 1 where alerts stand is unknown: nobody evaluated there (with --json nothing is shown then).
    """
    from queries.alerts.delivery.receivers import states_of  # noqa: PLC0415 (as below)
    from queries.alerts.loading import load_rules  # noqa: PLC0415 (slow to load)
    from queries.alerts.memory import document_of  # noqa: PLC0415

    rules = load_rules(settings.alert_rules, settings.alert_interval_s)
    try:
        place = place_of(settings)
        entries, counters = standing_at(place)
    except NotEvaluatedError:
        if not as_json:
            output_console().print(folding(rules_table(rules, None)))
        raise
    if rule and rule not in {entry.rule for entry in entries.values()}:
        rules.named(rule)
    wanted = [
        entry
        for entry in entries.values()
        if entry.rule == (rule or entry.rule) and entry.standing.state == (state or entry.standing.state)
    ]
    if as_json:
        document = {
            "rules": [rule.alert for rule in rules.rules],
            "refused": [str(refused) for refused in rules.refused],
            "alerts": [document_of(entry) for entry in wanted],
            "receivers": [state.model_dump(mode="json") for state in states_of(place)],
            "counters": counters,
        }
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
        return
    console = output_console()
    if wanted:
        console.print(escape(how_many(wanted)), soft_wrap=True)
    console.print(folding(rules_table(rules, list(entries.values()))))
    silences, trouble = silences_in_force(place, datetime.now(UTC))
    if wanted:
        console.print(folding(alerts_table(wanted, silences)))
    elif entries:
        console.print("no alert is of that rule and state")
    if trouble:
        console.print(f"[red]Alertmanager's silences are not known[/]: {escape(trouble)}", soft_wrap=True)
    for receiver in states_of(place):
        console.print(receiver_line(receiver), soft_wrap=True)
    for refused in rules.refused:
        console.print(f"[red]refused[/] {refused}", soft_wrap=True)
    console.print(escape(last_evaluation(place.data_dir, counters)), soft_wrap=True)


def how_many(entries: "Sequence[Entry]") -> str:
    """How many alerts there are: `3 alerts: 2 firing (StuckInPlain 2), 1 pending (ClockSkew 1)`."""
    parts = []
    for state in _SHOWN_FIRST:
        by_rule = Counter(entry.rule for entry in entries if entry.standing.state == state)
        if by_rule:
            rules = ", ".join(f"{rule} {count:,}" for rule, count in by_rule.most_common())
            parts.append(f"{by_rule.total():,} {state} ({rules})")
    return f"{counted(len(entries), 'alert')}: {', '.join(parts)}"


def severity_and_since(entry: "Entry") -> tuple[int, int, datetime, str]:
    """What fires first; of that the most severe, and then what has for longest."""
    severity = entry.labels.get("severity", "")
    return (
        _SHOWN_FIRST.index(entry.standing.state),
        _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES),
        entry.starts_at or datetime.max.replace(tzinfo=UTC),
        entry.rule,
    )


def rules_table(rules: "Rules", entries: "list[Entry] | None") -> Table:
    """One line a rule; None where nobody knows how they stand."""
    table = Table("rule", "asks", "severity", "fires on for", "alerts", box=None, pad_edge=False)
    for rule in rules.rules:
        states = [str(entry.standing.state) for entry in entries or () if entry.rule == rule.alert]
        counts = ", ".join(f"{states.count(state)} {state}" for state in _SHOWN_FIRST if state in states)
        quiet = "unknown" if entries is None else "inactive"
        asks = rule.query or f"the {rule.watches}"
        table.add_row(rule.alert, asks, rule.severity, f"{rule.keep_firing_for:,.0f} s", counts or quiet)
    return table


def silences_in_force(settings: SilenceSettings, now: datetime) -> "tuple[list[Silence], str]":
    """Our own and Alertmanager's; and why the latter are not known, '' where they are, or where there is none."""
    from queries.alerts.delivery.receivers import alertmanager_silences, own_silences  # noqa: PLC0415 (as above)

    found, trouble = list(own_silences(settings).all()), ""
    try:
        alertmanager = alertmanager_silences(settings)
        found += alertmanager.all() if alertmanager else ()
    except QueriesError as wrong:
        trouble = str(wrong)
    return [one for one in found if one.state(now) == "active"], trouble


def alerts_table(entries: "list[Entry]", silences: "Sequence[Silence]" = ()) -> Table:
    """One line an alert, what fires and is severe first; its engine too where its summary does not name it."""
    table = Table("state", "alert", "since", "summary", box=None, pad_edge=False)
    for entry in sorted(entries, key=lambda one: (severity_and_since(one), one.identity)):
        since = f"{entry.starts_at:%m-%d %H:%M:%S}" if entry.starts_at else ""
        silenced = " (silenced)" if any(one.mutes(entry.labels) for one in silences) else ""
        engine = entry.labels.get("service_instance_id", "")
        which = f"[{engine}] " if engine and engine not in entry.summary else ""
        table.add_row(
            f"{entry.standing.state}{silenced}", entry.rule, since, escape(shortened(f"{which}{told(entry)}"))
        )
    return table


def told(entry: "Entry") -> str:
    """Its summary; where it fires on although it is clear, that, and that the summary is of when it was not."""
    clear_s = entry.standing.clear_s
    return entry.summary if clear_s is None else f"(clear for {clear_s:,.0f} s) {entry.summary}"


def receiver_line(state: "ReceiverState") -> str:
    """How one receiver does."""
    colour = "red" if state.state == "failing" else "green"
    line = f"[{colour}]{state.state}[/] to {state.name} since {state.since:%Y-%m-%d %H:%M:%S} UTC"
    return f"{line}: {escape(state.error)}" if state.error else line


def last_evaluation(data_dir: Path, counters: Mapping[str, float]) -> str:
    """When, where, and what went wrong since the evaluator began."""
    at = datetime.fromtimestamp(counters["evaluated_at"], UTC)
    troubles = [
        f"{name.replace('_', ' ')} {value:,.0f}"
        for name, value in sorted(counters.items())
        if value and name not in _FIGURES
    ]
    return f"last evaluated {at:%Y-%m-%d %H:%M:%S} UTC, on {data_dir}" + (
        f"; {', '.join(troubles)}" if troubles else ""
    )


_FIGURES: Final = ("evaluated_at", "evaluations", "history_rows_stored", "alerts_sent")

"""What is wrong with a rule beyond its form: against the catalogue, and against how often it is evaluated."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from queries.alerts.rule import Rule, Watched
from queries.alerts.sources import JUDGED
from queries.catalogue import Query, find
from queries.errors import QueriesError
from queries.parameters import bound

FILLED_IN: Final = frozenset({"at", "from", "to", "behind_s"})
"""Parameters that the evaluator sets."""
NUMBERLESS_UNITS: Final = frozenset({"", "time"})

WATCHED_COLUMNS: Final[Mapping[Watched, tuple[str, ...]]] = {
    "collector": (
        "pending_requests",
        "pending_bytes",
        "oldest_waiting_s",
        "set_aside_requests",
        "set_aside_bytes",
        "spool_fraction",
        "store_fraction",
        "store_bytes",
        "store_dropped_rows",
        "disk_free_bytes",
        "look_failing_s",
        "look",
        "look_failure",
        "look_error",
    ),
    "evaluator": ("blind_s", "rules_failing", "evaluations_skipped", "failing"),
}
"""What the rows of `watches` have."""


class Complaint(NamedTuple):
    """One thing that is wrong."""

    field: str
    """Where in the rule, `when` or `annotations.summary`."""
    says: str
    is_error: bool = True
    """Whether the rule is refused for it; else it is a warning."""


def complaints(rule: Rule, interval_s: float) -> Iterator[Complaint]:
    """Everything that is wrong with a rule which is evaluated every `interval_s`."""
    yield from _durations(rule, interval_s)
    yield from _texts(rule)
    if unknown := unknown_query(rule.query):
        yield Complaint("query", unknown)
        for field, name in (("live", rule.live), ("suspects", rule.suspects)):
            if unknown := unknown_query(name):
                yield Complaint(field, unknown)
        return
    query = find(rule.query) if rule.query else None
    yield from _columns(rule, query)
    if query:
        yield from _live(rule, query)
        yield from _suspects(rule)
        yield from _parameters(rule, query)
        yield from _identity(rule, query)


def unknown_query(name: object) -> str:
    """What is wrong with a query's name; '' where it names one, or is no name at all."""
    if not isinstance(name, str):
        return ""
    try:
        find(name)
    except QueriesError as unknown:
        return str(unknown)
    return ""


def _columns(rule: Rule, query: Query | None) -> Iterator[Complaint]:
    known = {column.name for column in query.columns} if query else set(WATCHED_COLUMNS[rule.watches or "collector"])
    where = f"query {query.name}" if query else f"what {rule.watches} shows"
    for field, names in rule.columns_named.items():
        for name in sorted(names - known):
            yield Complaint(field, f"{where} has no column {name}; it has {', '.join(sorted(known))}")


def _live(rule: Rule, query: Query) -> Iterator[Complaint]:
    """What is asked of the present has the same columns, and the same parameters as far as the rule sets them."""
    if not rule.live:
        return
    try:
        live = find(rule.live)
        bound(live, rule.parameters)
    except QueriesError as wrong:
        yield Complaint("live", str(wrong))
        return
    lacking = {column.name for column in query.columns} | {JUDGED}
    if lacking := lacking - {column.name for column in live.columns}:
        yield Complaint("live", f"query {live.name} lacks {', '.join(sorted(lacking))}")


def _suspects(rule: Rule) -> Iterator[Complaint]:
    """It is asked from an instant to another, and says from when to when."""
    if not rule.suspects:
        return
    if unknown := unknown_query(rule.suspects):
        yield Complaint("suspects", unknown)
        return
    suspects = find(rule.suspects)
    if lacking := {"since", "until"} - {column.name for column in suspects.columns}:
        yield Complaint("suspects", f"query {suspects.name} lacks {', '.join(sorted(lacking))}")
    if lacking := {"from", "to"} - {parameter.name for parameter in suspects.parameters}:
        yield Complaint("suspects", f"query {suspects.name} has no parameter {', '.join(sorted(lacking))}")


def _parameters(rule: Rule, query: Query) -> Iterator[Complaint]:
    if taken := FILLED_IN & set(rule.parameters):
        yield Complaint("parameters", f"{min(taken)} is set by the evaluator; `window` says how far back to look")
        return
    try:
        bound(query, rule.parameters)
    except QueriesError as wrong:
        yield Complaint("parameters", str(wrong))


def _identity(rule: Rule, query: Query) -> Iterator[Complaint]:
    units = {column.name: column.unit for column in query.columns}
    for name in rule.identity:
        if units.get(name, ""):
            yield Complaint("identity", f"{name} is measured ({units[name]}): values belong in annotations")
    for condition in rule.when:
        if units.get(condition.column) in NUMBERLESS_UNITS and condition.equals is None:
            yield Complaint("when", f"{condition.column} is no number: compare it with `is`")
    if not rule.identity:
        yield Complaint("identity", "without identity all rows would be one alert")


def _durations(rule: Rule, interval_s: float) -> Iterator[Complaint]:
    every_s = max(interval_s, rule.every)
    for name, duration_s in (("for", rule.for_), ("keep_firing_for", rule.keep_firing_for)):
        if 0 < duration_s < every_s:
            yield Complaint(name, f"{duration_s:g} s is shorter than the {every_s:g} s between two evaluations")
    if rule.forget_after < every_s:
        yield Complaint(
            "forget_after", f"{rule.forget_after:g} s is shorter than the {every_s:g} s between two evaluations"
        )


def _texts(rule: Rule) -> Iterator[Complaint]:
    texts = {name: names for name, names in rule.columns_named.items() if name.startswith("annotations.")}
    if not any(texts.values()):
        yield Complaint("annotations", "no annotation names a column: whoever is woken cannot see what was measured")
    if not rule.runbook.strip():
        yield Complaint("runbook", "the runbook is empty")
    if not rule.link:
        yield Complaint("link", "no page of the dashboards is linked", is_error=False)

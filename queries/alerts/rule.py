"""A rule as it is written: which query, which condition, and what to tell whom."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from queries.alerts.conditions import Condition
from queries.alerts.states import Timing
from queries.alerts.templates import names_in

_DURATION: Final = re.compile(r"(?P<amount>\d+(?:\.\d+)?)(?P<unit>s|m|h|d)")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LABEL_NAME: Final = r"^[a-zA-Z_][a-zA-Z0-9_]*$"
RESERVED_LABELS: Final = frozenset({"alertname", "severity"})


def seconds(text: Any) -> Any:
    """A duration like `30s`, `5m`, `1h`, `7d`, in s.

    Raises:
        ValueError: anything else.
    """
    if text == 0:
        return 0.0
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError("a duration is written 30s, 5m, 1h or 7d")
    return float(found["amount"]) * _UNIT_S[found["unit"]]


Duration = Annotated[float, BeforeValidator(seconds)]
Watched = Literal["collector", "evaluator"]


class Rule(BaseModel):
    """One rule. docs/alerting.md explains each field to whoever writes one."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    alert: Annotated[str, Field(pattern=LABEL_NAME, max_length=80)]
    """Its name, and the label `alertname`."""
    query: str | None = None
    """A query of the catalogue: each row is one series."""
    live: str | None = None
    """A query of the same columns and one more, `judged`, that is asked of the present in its place: out of rollups, and of
    what was judged before. Where a row of it is not judged, `query` is asked after all."""
    suspects: str | None = None
    """A query whose rows say, from `since` to `until`, when the condition may have begun to hold: outside of them a
    backtest does not look."""
    watches: Watched | None = None
    """Instead of a query: the collector's own state, or this evaluator's. One row."""
    parameters: dict[str, bool | int | float | str] = {}
    """Values of the query's parameters, besides those that the evaluator fills in: `at`, `from`, `to`."""
    window: Duration = 120.0
    """How far back a query with a parameter `from` looks."""
    every: Duration = 0.0
    """How often at most it is evaluated; 0 is every time."""
    when: Annotated[tuple[Condition, ...], Field(min_length=1)]
    """All of them have to hold."""
    for_: Duration = Field(0.0, alias="for")
    keep_firing_for: Duration = 0.0
    """For how long its condition has to be clear, without a break, before it is resolved: one message an episode."""
    forget_after: Annotated[Duration, Field(gt=0)] = 3600.0
    absent: Literal["no_data", "clear"] = "no_data"
    """What a series is that has no row: unknown, or clear, where the query lists nothing but troubles."""
    severity: Literal["critical", "warning", "info"]
    identity: tuple[str, ...]
    """Columns that become labels: what tells one series from another. Never a measured value."""
    labels: dict[Annotated[str, Field(pattern=LABEL_NAME)], str] = {}
    """Further labels."""
    annotations: dict[Annotated[str, Field(pattern=LABEL_NAME)], str]
    """Texts with columns in them, `summary` among them."""
    resolved: str = ""
    """What is true once it is over, with columns of the row that shows it; without it, `over: ` and the last summary."""
    runbook: Annotated[str, Field(min_length=1)]
    """What to do about it."""
    link: str = ""
    """A page of the dashboards, from their root on: `cell?engine={service_instance_id}&cell={cell}`."""
    since: str | None = None
    """A column that says when the trouble began."""
    finding_of: str | None = None
    """A column that names a cell whose diagnosis is told with the alert."""

    @model_validator(mode="after")
    def _whole(self) -> "Rule":
        if wrong := "; ".join(self.faults()):
            raise ValueError(wrong)
        return self

    def faults(self) -> Iterator[str]:
        """What is wrong with it as a whole."""
        if (self.query is None) == (self.watches is None):
            yield "a rule has either a query or watches"
        if (self.live or self.suspects) and self.watches:
            yield "live and suspects go with a query: what is watched has none"
        if "summary" not in self.annotations:
            yield "annotations has no summary"
        if taken := (RESERVED_LABELS | set(self.identity)) & set(self.labels):
            yield f"labels names {min(taken)}, which is set already"
        for text in (*self.annotations.values(), self.resolved, self.link):
            try:
                names_in(text)
            except ValueError as wrong:
                yield str(wrong)

    @property
    def timing(self) -> Timing:
        """Its durations."""
        return Timing(self.for_, self.keep_firing_for, self.forget_after)

    @property
    def columns_named(self) -> dict[str, frozenset[str]]:
        """The columns that it names, by the field that does."""
        texts = {f"annotations.{name}": names_in(text) for name, text in self.annotations.items()}
        return {
            "when": frozenset(condition.column for condition in self.when),
            "identity": frozenset(self.identity),
            "since": frozenset(filter(None, (self.since,))),
            "finding_of": frozenset(filter(None, (self.finding_of,))),
            "link": names_in(self.link),
            "resolved": names_in(self.resolved),
            **texts,
        }

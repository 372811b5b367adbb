"""The diagnosis of the cell that an alert is about, in a few lines: told with the alert, never waited for long."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

import structlog

from queries.alerts.book import Entry, Identity, with_finding
from queries.alerts.bounded import Call, Calls, TooSlowError
from queries.errors import QueriesError
from queries.findings.findings import Diagnosis, EstimateInflation, Finding, Poison, SpeedChange
from queries.postmortem.story import cause_of, words_of
from queries.record import executions_of, sampled_away

WAIT_S: Final = 5.0
"""How long one evaluation waits for all of its findings."""
AT_ONCE_MAX: Final = 4
"""Diagnoses under way at a time; further alerts get theirs at a later evaluation."""

Tell = Callable[[str, str], str]
"""Engine instance and cell to text, '' where the cell shows nothing that could fire. May raise QueriesError."""


class UnderWay(NamedTuple):
    """A diagnosis that was asked for."""

    call: Call[str]
    entry: Entry
    """The alert as it was then: it may be about another cell by the time that the finding is there."""


class Findings:
    """Puts the finding into alerts that want one, once each."""

    def __init__(self, tell: Tell, wait_s: float = WAIT_S) -> None:
        self._tell = tell
        self._wait_s = wait_s
        self._calls = Calls()
        self._under_way: dict[Identity, UnderWay] = {}
        self._told_nothing: dict[Identity, str] = {}
        """Cells that were looked at in vain: the next look is at another."""

    def add_to(self, entries: dict[Identity, Entry]) -> frozenset[Identity]:
        """Give each alert that fires about a cell its annotation `finding`; those not known in time get it later.

        Returns those that got one.
        """
        wanting = [entry for entry in entries.values() if self._wants(entry)]
        self._forget(entries)
        for entry in wanting:
            self._begin(entry)
        left_s = self._wait_s
        given = set()
        for entry in wanting:
            if asked := self._under_way.get(entry.identity):
                text = self._text_of(asked, left_s)
                left_s = left_s if asked.call.is_done else 0.0
                if text:
                    entries[entry.identity] = with_finding(entry, text, asked.entry)
                    given.add(entry.identity)
        return frozenset(given)

    def _wants(self, entry: Entry) -> bool:
        return (
            entry.standing.fires
            and "finding" not in entry.annotations
            and "cell" in entry.about
            and self._told_nothing.get(entry.identity) != entry.about["cell"]
        )

    def _forget(self, entries: dict[Identity, Entry]) -> None:
        firing = {identity for identity, entry in entries.items() if entry.standing.fires}
        self._told_nothing = {identity: cell for identity, cell in self._told_nothing.items() if identity in firing}
        self._under_way = {identity: asked for identity, asked in self._under_way.items() if identity in firing}

    def _begin(self, entry: Entry) -> None:
        busy = sum(not one.call.is_done for one in self._under_way.values())
        if entry.identity in self._under_way or busy >= AT_ONCE_MAX:
            return
        instance, cell = entry.about.get("service_instance_id", ""), entry.about["cell"]
        call = self._calls.start(f"finding {instance} {cell}", lambda: self._tell(instance, cell))
        if call:
            self._under_way[entry.identity] = UnderWay(call, entry)

    def _text_of(self, asked: UnderWay, wait_s: float) -> str:
        try:
            text = asked.call.result(wait_s)
        except TooSlowError:
            return ""
        except Exception as wrong:
            if not isinstance(wrong, QueriesError):
                structlog.get_logger().warning("a finding failed", error=f"{type(wrong).__name__}: {wrong}"[:400])
            text = f"none: {str(wrong)[:300]}"
        del self._under_way[asked.entry.identity]
        if not text:
            self._told_nothing[asked.entry.identity] = asked.entry.about["cell"]
        return text


def telling(clickhouse_url: str) -> Tell:
    """Diagnoses stored cells."""

    def tell(instance: str, cell: str) -> str:
        from queries.findings.diagnosis import diagnose  # noqa: PLC0415 (scipy and numpy slow the start)
        from queries.findings.record import BEFORE_NS  # noqa: PLC0415 (as above)
        from queries.findings.stored import neighbourhood_of  # noqa: PLC0415 (as above)

        recorded = executions_of(clickhouse_url, instance, cell, BEFORE_NS / 1e9)
        diagnosis = diagnose(neighbourhood_of(clickhouse_url, recorded))
        return in_words(diagnosis, cell, datetime.now(UTC), recorded.executions_dropped)

    return tell


def in_words(diagnosis: Diagnosis, cell: str, at: datetime, executions_dropped: int = 0) -> str:
    """What happened in which cell, as looked at when, since when, what it costs, and which execution did it.

    It begins with how many of the cell's executions sampling dropped, where it did: the diagnosis is of the rest.
    '' where the cell is well: then nothing in it made an alert fire.
    """
    if diagnosis.is_well:
        return ""
    of_label = (finding for finding in diagnosis.findings if finding.kind is diagnosis.label)
    label = next(map(_named, of_label), "") or cause_of(diagnosis)
    said_first = [sampled_away(executions_dropped)] if executions_dropped else []
    lines = [*said_first, f"Cell {cell}, as of {at:%Y-%m-%d %H:%M:%S} UTC:", f"{label}: {_cost(diagnosis)}"]
    for finding in diagnosis.findings[:2]:
        lines.append(f"- {_named(finding)} since {_clock(finding.since_ns)}:")
        lines += [f"  {evidence.says}" for evidence in finding.evidence[:2]]
        if isinstance(finding, EstimateInflation):
            lines += [_poison(poison) for poison in finding.poisons[:1]]
    return "\n".join(lines)[:2000]


def _named(finding: Finding) -> str:
    """What kind a finding is of; not by a cause that the record cannot tell from another."""
    unsure = isinstance(finding, SpeedChange) and not finding.others_seen
    return words_of(finding) if unsure else finding.kind.value.replace("_", " ")


def _cost(diagnosis: Diagnosis) -> str:
    per_s = diagnosis.tokens_lost / diagnosis.seconds if diagnosis.seconds > 0 else 0.0
    return f"{per_s:,.0f} tokens/s lost in that cell ({diagnosis.tokens_lost:,.0f} in {diagnosis.seconds:.0f} s)"


def _poison(poison: Poison) -> str:
    which = "an execution that was never recorded" if poison.sequence is None else f"execution {poison.sequence}"
    return (
        f"  poisoned by {which} of {poison.graph} at {_clock(poison.at_ns)}, which lifted the estimate from "
        f"{poison.estimate_before_ns / 1e6:.1f} to {poison.estimate_after_ns / 1e6:.1f} ms"
    )


def _clock(unix_ns: int) -> str:
    return f"{datetime.fromtimestamp(unix_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"

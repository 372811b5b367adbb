"""What broke a rule, counted, with one example each."""

from typing import Any, Final, NamedTuple

from collector.conformance.rules import RULES, Rule, Severity

SUBJECTS_MAX: Final = 32
"""Attributes or graphs told apart for each rule; what comes after is counted together."""
OTHERS: Final = "(others)"
_VALUE_CHARACTERS_MAX: Final = 120


class Breach(NamedTuple):
    """One breach of one rule by one span."""

    rule: Rule
    subject: str
    """What it is about: an attribute, a graph; empty where the rule has but one."""
    value: str
    """What was found."""


class Example(NamedTuple):
    """Where a breach was seen first."""

    span: str
    """How to find the span again: instance, sequence, span id. Empty for a whole request."""
    value: str


class Finding(NamedTuple):
    """Every breach of a rule by one subject."""

    rule: Rule
    subject: str
    times: int
    example: Example


class Findings:
    """Counts breaches: one count and the first example for each rule and subject, however long it runs."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Finding]] = {}

    def add(self, breach: Breach, span: str, count: int = 1) -> None:
        """Take one breach, or several alike, of which this span is an example."""
        found = self._found.setdefault(breach.rule.id, {})
        subject = breach.subject if breach.subject in found or len(found) < SUBJECTS_MAX else OTHERS
        known = found.get(subject)
        if known is None:
            found[subject] = Finding(breach.rule, subject, count, Example(span, breach.value))
        else:
            found[subject] = known._replace(times=known.times + count)

    def listed(self) -> list[Finding]:
        """All of them, errors first, each in the order of the rules, the commonest subject first."""
        every = [finding for rule in RULES for finding in self._found.get(rule.id, {}).values()]
        order = {rule.id: number for number, rule in enumerate(RULES)}
        return sorted(every, key=lambda f: (f.rule.severity is not Severity.ERROR, order[f.rule.id], -f.times))


def shown(value: Any) -> str:
    """A value of any kind as one short line of printable text."""
    text = ascii(value) if not isinstance(value, str) or not value.isprintable() else value
    return text if len(text) <= _VALUE_CHARACTERS_MAX else text[: _VALUE_CHARACTERS_MAX - 1] + "…"

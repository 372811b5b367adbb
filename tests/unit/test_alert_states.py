"""The states of an alert: what one look after another makes of it, whatever the looks show."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries.alerts.book import Entry, look
from queries.alerts.conditions import Condition, judge
from queries.alerts.memory import document_of, entry_of
from queries.alerts.rule import Rule
from queries.alerts.states import ENDED_KEPT_S, Seen, Standing, State, Timing, step

B, W, C, M, R = Seen.BREACHED, Seen.WITHIN, Seen.CLEAR, Seen.MISSING, Seen.REPLACED
TIMINGS = st.builds(
    Timing,
    st.sampled_from([0.0, 10.0, 30.0]),
    st.sampled_from([0.0, 10.0, 30.0]),
    st.sampled_from([20.0, 100.0]),
)
LOOKS = st.lists(st.tuples(st.sampled_from(list(Seen)), st.floats(0, 60)), max_size=60)


def walk(looks: list[tuple[Seen, float]], timing: Timing) -> list[Standing]:
    standing, path = Standing(), []
    for seen, elapsed_s in looks:
        standing = step(standing, seen, elapsed_s, timing)
        path.append(standing)
    return path


def states(seen: list[Seen], timing: Timing, elapsed_s: float = 10.0) -> list[str]:
    return [str(standing.state) for standing in walk([(one, elapsed_s) for one in seen], timing)]


@pytest.mark.parametrize(
    ("timing", "seen", "expected"),
    [
        (Timing(), [B, B, C, C], ["firing", "firing", "resolved", "resolved"]),
        (Timing(20), [B, B, B, C], ["pending", "pending", "firing", "resolved"]),
        (Timing(20), [B, B, W, B, B, B], ["pending", "pending", "inactive", "pending", "pending", "firing"]),
        (Timing(), [B, W, W, C], ["firing", "firing", "firing", "resolved"]),
        (Timing(0, 20), [B, C, C, C], ["firing", "firing", "firing", "resolved"]),
        (Timing(0, 20), [B, C, C, W, C, C, C], [*["firing"] * 6, "resolved"]),
        (Timing(), [B, C, B], ["firing", "resolved", "firing"]),
        (Timing(0, 0, 30), [B, M, M, M, M], ["firing", "no_data", "no_data", "no_data", "gone"]),
        (Timing(0, 0, 30), [B, M, M, B, C], ["firing", "no_data", "no_data", "firing", "resolved"]),
        (Timing(0, 0, 30), [B, M, C], ["firing", "no_data", "resolved"]),
        (Timing(20, 0, 30), [B, B, M, B, B], ["pending", "pending", "no_data", "pending", "firing"]),
        (Timing(20, 0, 20), [B, M, M, M], ["pending", "no_data", "no_data", "inactive"]),
        (Timing(), [M, W, C], ["inactive"] * 3),
        (Timing(0, 20), [B, R, R, B], ["firing", "gone", "gone", "firing"]),
        (Timing(0, 20), [B, C, R], ["firing", "firing", "gone"]),
        (Timing(), [B, M, R], ["firing", "no_data", "gone"]),
        (Timing(20), [B, R, B, M, R], ["pending", "inactive", "pending", "no_data", "inactive"]),
        (Timing(), [B, C, R], ["firing", "resolved", "resolved"]),
    ],
)
def test_by_hand(timing: Timing, seen: list[Seen], expected: list[str]) -> None:
    assert states(seen, timing) == expected


@given(LOOKS, TIMINGS)
def test_it_fires_only_after_the_condition_was_seen_to_hold_for_long_enough(
    looks: list[tuple[Seen, float]], timing: Timing
) -> None:
    held_s, before = None, Standing()
    last_was_missing = False
    for (seen, elapsed_s), standing in zip(looks, walk(looks, timing), strict=True):
        if seen == B:
            held_s = 0.0 if held_s is None else held_s + (0.0 if last_was_missing else elapsed_s)
        elif seen != M:
            held_s = None
        if standing.state == State.FIRING and not before.fires:
            assert held_s is not None
            assert held_s >= timing.for_s - 1e-6
        if not before.fires and standing.state == State.INACTIVE and before.state != State.INACTIVE and seen == M:
            held_s = None
        last_was_missing, before = seen == M, standing


@given(LOOKS, TIMINGS)
def test_missing_data_never_resolves_and_never_fires(looks: list[tuple[Seen, float]], timing: Timing) -> None:
    before = Standing()
    for (seen, _), standing in zip(looks, walk(looks, timing), strict=True):
        if seen == M:
            assert standing.state != State.RESOLVED or before.state == State.RESOLVED
            assert standing.fires <= before.fires
            assert not (before.fires and not standing.fires) or standing.state == State.GONE
        if standing.state == State.RESOLVED and before.state != State.RESOLVED:
            assert seen == C
            assert before.fires
        before = standing


@given(LOOKS, TIMINGS)
def test_what_fires_stays_until_it_is_clear_for_long_enough(looks: list[tuple[Seen, float]], timing: Timing) -> None:
    before = Standing()
    for (seen, _), standing in zip(looks, walk(looks, timing), strict=True):
        if before.fires and seen in (B, W):
            assert standing.state == State.FIRING
        before = standing


@given(LOOKS, TIMINGS, st.integers(0, 59))
def test_a_restart_changes_nothing(looks: list[tuple[Seen, float]], timing: Timing, restarted_at: int) -> None:
    standing = Standing()
    for n, (seen, elapsed_s) in enumerate(looks):
        if n == restarted_at:
            entry = Entry("Rule", (("alertname", "Rule"),), standing, datetime(2026, 11, 1, tzinfo=UTC))
            again = entry_of(json.loads(json.dumps(document_of(entry))))
            assert again == entry
            standing = again.standing
        standing = step(standing, seen, elapsed_s, timing)
    assert standing == (walk(looks, timing)[-1] if looks else Standing())


def test_what_ended_is_told_for_a_while() -> None:
    path = walk([(B, 0), (C, 10), *[(C, ENDED_KEPT_S / 3)] * 3], Timing())
    assert [standing.ended for standing in path] == [False, True, True, True, False]


def condition(**fields: Any) -> Condition:
    return Condition.model_validate({"column": "x", **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"above": 0.3, "clear_below": 0.2}, {0.31: B, 0.3: W, 0.2: W, 0.19: C}),
        ({"above": 0.3}, {0.31: B, 0.3: C, 0.0: C}),
        ({"below": 5, "clear_above": 7}, {4.9: B, 5: W, 7: W, 7.1: C}),
        ({"below": 5}, {4.9: B, 5: C}),
        ({"above": 0}, {1: B, 0: C, None: M, float("nan"): M}),
        ({"is": True}, {True: B, False: C, None: M}),
        ({"is": "ahead"}, {"ahead": B, "behind": C}),
    ],
)
def test_conditions(fields: dict[str, Any], expected: dict[Any, Seen]) -> None:
    assert {value: condition(**fields).judge({"x": value}) for value in expected} == expected


@pytest.mark.parametrize(
    "seen", [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.5}, {"a": 1.0, "b": 0.0}, {"a": 1.0}, {"b": 0.0}]
)
def test_conditions_hold_together(seen: dict[str, float]) -> None:
    both = (
        Condition.model_validate({"column": "a", "above": 0.9}),
        Condition.model_validate({"column": "b", "above": 0.9, "clear_below": 0.2}),
    )
    expected = {(1.0, 1.0): B, (1.0, 0.5): W, (1.0, 0.0): C, (1.0, None): M, (None, 0.0): C}
    assert judge(both, seen) == expected[seen.get("a"), seen.get("b")]


RULE = Rule.model_validate(
    {
        "alert": "TooMuch",
        "query": "stuck_engines",
        "when": [{"column": "x", "above": 1}],
        "identity": ["host_name"],
        "severity": "warning",
        "annotations": {"summary": "{x:.1f} on {host_name}"},
        "runbook": "Look.",
    }
)
NOW = datetime(2026, 11, 29, tzinfo=UTC)


def test_identity_is_the_label_set_and_values_are_annotations() -> None:
    first = look(RULE, {}, [{"host_name": "a", "x": 2.0}, {"host_name": "b", "x": 0.0}], elapsed_s=0, now=NOW)
    (entry,) = first.entries.values()
    assert dict(entry.identity) == {"alertname": "TooMuch", "severity": "warning", "host_name": "a"}
    later = NOW + timedelta(seconds=10)
    second = look(RULE, first.entries, [{"host_name": "a", "x": 3.0}], elapsed_s=10, now=later)
    assert not second.changes
    assert second.entries.keys() == first.entries.keys()
    again = second.entries[entry.identity]
    assert (again.starts_at, again.annotations["summary"]) == (NOW, "3.0 on a")


def test_a_series_without_a_row_is_unknown_unless_the_query_lists_troubles_only() -> None:
    firing = look(RULE, {}, [{"host_name": "a", "x": 2.0}], elapsed_s=0, now=NOW).entries
    troubles_only = RULE.model_copy(update={"absent": "clear"})
    assert [str(change.entry.standing.state) for change in look(RULE, firing, [], elapsed_s=10, now=NOW).changes] == [
        "no_data"
    ]
    assert [
        str(change.entry.standing.state) for change in look(troubles_only, firing, [], elapsed_s=10, now=NOW).changes
    ] == ["resolved"]
    assert [
        str(change.entry.standing.state) for change in look(troubles_only, firing, None, elapsed_s=10, now=NOW).changes
    ] == ["no_data"]


def test_what_ended_or_never_fired_is_not_told_as_if_it_fired() -> None:
    """Neither by a look between the thresholds afterwards, nor in the row of history that ends it."""
    rule = RULE.model_copy(
        update={
            "when": (condition(above=1, clear_below=0.5),),
            "resolved": "{x:.1f} is little",
            "for_": 20.0,
            "keep_firing_for": 0.0,
        }
    )
    entries: dict[Any, Entry] = {}
    told = []
    for x, elapsed_s in [(2, 0), (3, 20), (0.1, 10), (0.8, 10), (0.9, ENDED_KEPT_S), (4, 10), (0.7, 10)]:
        looked = look(rule, entries, [{"host_name": "a", "x": float(x)}], elapsed_s=elapsed_s, now=NOW)
        entries = looked.entries
        told += [(str(one.entry.standing.state), one.entry.annotations["summary"]) for one in looked.changes]
        for entry in entries.values():
            assert not entry.standing.ended or entry.annotations["summary"] == "0.1 is little"
    assert told == [
        ("pending", "2.0 on a"),
        ("firing", "3.0 on a"),
        ("resolved", "0.1 is little"),
        ("inactive", "0.1 is little"),
        ("pending", "4.0 on a"),
        ("inactive", "did not come to fire: 4.0 on a"),
    ]

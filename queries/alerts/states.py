"""Where an alert stands, and how one look at its series moves it. Pure: no clock, no I/O; time comes in as seconds.

What Prometheus does, and two states it lacks. `no_data`: the series was last pending or firing, and nothing is known
of it now; whoever fired goes on firing, because nobody has seen it recover. `gone`: nothing was heard for so long that
it is given up, or its engine was replaced; not resolved, for the same reason.

Time in which nothing was known counts neither for `for` nor for `keep_firing_for`.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

ENDED_KEPT_S: Final = 15 * 60.0
"""How long an alert that ended is still told to the receivers."""


class State(StrEnum):
    """What an alert is."""

    INACTIVE = "inactive"
    PENDING = "pending"
    """The condition holds, not yet for long enough."""
    FIRING = "firing"
    NO_DATA = "no_data"
    """Pending or firing when last seen; now nothing is known of it."""
    RESOLVED = "resolved"
    """Fired, and was seen to be over."""
    GONE = "gone"
    """Fired, and was never seen again, or not seen to be over before its engine was replaced."""


class Seen(StrEnum):
    """What one look at a series shows."""

    BREACHED = "breached"
    """The condition holds."""
    WITHIN = "within"
    """It does not, but the clear threshold is not reached either."""
    CLEAR = "clear"
    MISSING = "missing"
    """Nothing is known: no row, no value, or no answer."""
    REPLACED = "replaced"
    """Another engine has taken the place of the one that it is about: nothing more will be known of it."""


@dataclass(frozen=True)
class Timing:
    """A rule's durations, in s."""

    for_s: float = 0.0
    """How long the condition has to hold before the alert fires; 0 fires at once."""
    keep_firing_for_s: float = 0.0
    """How long it fires on after it is clear; 0 resolves at once."""
    forget_after_s: float = 3600.0
    """How long nothing may be known of it before it is given up."""


@dataclass(frozen=True)
class Standing:
    """Where an alert stands."""

    state: State = State.INACTIVE
    was: State = State.INACTIVE
    """While `no_data`: what it was when last seen."""
    held_s: float = 0.0
    """While pending: how long the condition has held."""
    clear_s: float | None = None
    """While firing: how long it has been clear; None where it is not."""
    missing_s: float = 0.0
    """While `no_data`: for how long."""
    ended_s: float = 0.0
    """While resolved or gone: for how long."""

    @property
    def fires(self) -> bool:
        """Whether receivers are told that it fires."""
        return State.FIRING in (self.state, self.was if self.state == State.NO_DATA else self.state)

    @property
    def ended(self) -> bool:
        """Whether receivers are told that it ended."""
        return self.state in (State.RESOLVED, State.GONE)


def step(standing: Standing, seen: Seen, elapsed_s: float, timing: Timing) -> Standing:
    """Where the alert stands after a look, `elapsed_s` of monotonic time after the one before."""
    if seen == Seen.REPLACED and not standing.ended:
        return Standing(State.GONE) if standing.fires else Standing()
    if seen in (Seen.MISSING, Seen.REPLACED):
        return _unseen(standing, elapsed_s, timing)
    if standing.state == State.NO_DATA:
        back = replace(standing, state=standing.was, was=State.INACTIVE, missing_s=0.0)
        return _seen(back, seen, 0.0, timing)
    return _seen(standing, seen, elapsed_s, timing)


def _unseen(standing: Standing, elapsed_s: float, timing: Timing) -> Standing:
    if standing.ended:
        return _ending(standing, elapsed_s)
    if standing.state == State.INACTIVE:
        return standing
    if standing.state != State.NO_DATA:
        return replace(standing, state=State.NO_DATA, was=standing.state)
    missing_s = standing.missing_s + elapsed_s
    if missing_s < timing.forget_after_s:
        return replace(standing, missing_s=missing_s)
    return Standing(State.GONE) if standing.fires else Standing()


def _seen(standing: Standing, seen: Seen, elapsed_s: float, timing: Timing) -> Standing:
    if standing.state == State.FIRING:
        return _while_firing(standing, seen, elapsed_s, timing)
    if seen != Seen.BREACHED:
        return _ending(standing, elapsed_s) if standing.ended else Standing()
    held_s = standing.held_s + elapsed_s if standing.state == State.PENDING else 0.0
    return Standing(State.FIRING) if held_s >= timing.for_s else Standing(State.PENDING, held_s=held_s)


def _while_firing(standing: Standing, seen: Seen, elapsed_s: float, timing: Timing) -> Standing:
    if seen != Seen.CLEAR:
        return replace(standing, clear_s=None)
    clear_s = 0.0 if standing.clear_s is None else standing.clear_s + elapsed_s
    return Standing(State.RESOLVED) if clear_s >= timing.keep_firing_for_s else replace(standing, clear_s=clear_s)


def _ending(standing: Standing, elapsed_s: float) -> Standing:
    ended_s = standing.ended_s + elapsed_s
    return replace(standing, ended_s=ended_s) if ended_s < ENDED_KEPT_S else Standing()

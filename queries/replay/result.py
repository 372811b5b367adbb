"""What a replay says, as plain data: the exact form, the closed loop, and both of one cell together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine_hooks.contract.names import Purpose
from queries.replay.exact import ReplayedDecision


class History(NamedTuple):
    """What the model could learn from before the first decision that is replayed."""

    executions: int
    """Stored executions of the same engine before the cell."""
    seconds: float
    """From the first of them to the cell's beginning."""
    from_startup: bool
    """The record reaches back to the engine's first submission, so that nothing is missing but what was lost."""
    executions_lost: int
    """Submission numbers that are missing, in the cell and in what was read before it."""


class ExactReplay(NamedTuple):
    """Every recorded decision, taken again by one model, knowing what was known then."""

    decisions: tuple[ReplayedDecision, ...]
    decisions_unusable: int
    """Decisions whose candidates, estimates and expected tokens do not go together in the record."""
    history: History
    notes: tuple[str, ...] = ()
    """What the record cannot tell of the graphs that the model prefers."""

    @property
    def ordinary(self) -> tuple[ReplayedDecision, ...]:
        """The decisions that are the model's; refreshes and probes are not."""
        return tuple(one for one in self.decisions if one.graph_purpose == Purpose.ORDINARY)

    @property
    def different(self) -> tuple[ReplayedDecision, ...]:
        """Those in which the model would have chosen another graph."""
        return tuple(one for one in self.decisions if one.differs)

    @property
    def decisions_cold(self) -> int:
        """Decisions in which some candidate had not been measured in what is stored."""
        return sum(one.cold for one in self.decisions)

    @property
    def agreement(self) -> float | None:
        """Share of decisions in which every charge is the recorded one, to the nanosecond."""
        return sum(one.agrees for one in self.decisions) / len(self.decisions) if self.decisions else None


class Simulated(NamedTuple):
    """One simulated run of a cell."""

    tokens_per_s: float
    plain_fraction: float
    """Share of ordinary decoding wall time spent in plain decode."""
    rounds: Mapping[str, int]
    """Executions of each graph."""


class ClosedLoop(NamedTuple):
    """A SIMULATION of what would have happened had the model been in charge, fitted to the cell's own record."""

    tokens_per_s: float
    """Mean over the seeds."""
    error_percent: float
    """Half the 95 % prediction interval of one run of such a cell, in per cent of `tokens_per_s`."""
    plain_fraction: float
    """Mean over the seeds."""
    runs: tuple[Simulated, ...]
    """Under the model, one a seed."""
    recorded_tokens_per_s: float
    recorded_plain_fraction: float
    recorded_choices: tuple[Simulated, ...]
    """The recorded choices simulated, one a seed: what the fit is off by, free of any scheduler."""
    recorded_model: tuple[Simulated, ...]
    """The model that was in charge, simulated, one a seed; empty if the record names none that is known here."""
    notes: tuple[str, ...]
    """What of the record the simulation cannot show."""

    @property
    def interval(self) -> tuple[float, float]:
        """95 % prediction interval of tokens/s."""
        half = self.tokens_per_s * self.error_percent / 100
        return self.tokens_per_s - half, self.tokens_per_s + half

    @property
    def gain_percent(self) -> float:
        """Tokens/s under the model against those recorded."""
        return self.against_recorded(self.tokens_per_s)

    @property
    def gain_interval_percent(self) -> tuple[float, float]:
        """The same of both ends of `interval`."""
        low, high = self.interval
        return self.against_recorded(low), self.against_recorded(high)

    def against_recorded(self, tokens_per_s: float) -> float:
        """How much more than recorded, in per cent."""
        return 100 * (tokens_per_s / self.recorded_tokens_per_s - 1)

    @property
    def calibration_percent(self) -> float:
        """How far the simulation of the recorded choices is off what was recorded."""
        return self.against_recorded(mean_tokens_per_s(self.recorded_choices))

    @property
    def recorded_model_percent(self) -> float | None:
        """How far the simulation of the recorded model is off what was recorded: its luck with stumbles included."""
        return self.against_recorded(mean_tokens_per_s(self.recorded_model)) if self.recorded_model else None


class Replay(NamedTuple):
    """A cell under another cost model."""

    replay_id: str
    service_instance_id: str
    cell: str
    cost_model: str
    """The model that replays."""
    recorded_cost_model: str
    """The one that was in charge; '' if the record does not say."""
    parameters: Mapping[str, str]
    """How it was replayed: seeds, history."""
    began_at: int
    """The cell's first submission, in Unix nanoseconds."""
    ended_at: int
    """Its last observed completion."""
    exact: ExactReplay | None
    closed_loop: ClosedLoop | None
    not_simulated: str = ""
    """Why there is no closed loop although it was asked for; '' else."""
    executions_dropped: int = 0
    """Of the cell, by sampling; what is replayed is the rest."""
    drafting_rounds: int = 0
    """Speculative rounds that are charged, and simulated, with the draft executions before them."""


def mean_tokens_per_s(runs: Sequence[Simulated]) -> float:
    """Of at least one run."""
    return sum(one.tokens_per_s for one in runs) / len(runs)

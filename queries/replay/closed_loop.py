"""The closed loop: what would have happened had another model been in charge, by SIMULATION fitted to the cell.

The simulated engine is the one that everything else here is tested on; the scenario is the cell's own record.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from engine_hooks.commands.counting import counted as in_words
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.model import NEVER_NS, CostModel, Estimate, Measurement, measurement_of
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named
from engine_hooks.scheduler.decision import BatchState, Decision
from engine_hooks.scheduler.errors import SchedulerError
from engine_hooks.scheduler.graphs import NO_DRAFTS, drafts_under
from engine_hooks.scheduler.scheduler import Scheduler, SchedulerSettings
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.errors import SimulatorError
from engine_hooks.simulator.recording import CellLabels
from engine_hooks.simulator.totals import Totals
from queries.errors import NotSimulatedError
from queries.known_by_then import observed_at
from queries.record import CellExecutions
from queries.replay.acceptance_error import acceptance_error
from queries.replay.fitting import Fit, fitted
from queries.replay.history import executions_lost
from queries.replay.result import ClosedLoop, Simulated, mean_tokens_per_s
from queries.replay.slow_host import notes_on_slow_host, preferred_of

NOTHING_CHARGED: Final = Estimate(0, 0, 0, 0, NEVER_NS)
DRAIN_ROUNDS: Final = 3
"""Rounds after which whatever was in flight has been observed."""


class RecordedChoices(Scheduler):
    """Chooses what was chosen in the record, round by round; learns nothing."""

    def __init__(self, fit: Fit) -> None:
        graphs = tuple(fit.scenario.engine.graph_gpu_ns)
        super().__init__(graphs, cost_model_named("startup_median"), SchedulerSettings(calibration_executions=0))
        known = {graph.name: graph for graph in graphs}
        self._left = [known[one.graph_name] for one in reversed(with_lost_ones(fit.rounds)) if one.graph_name in known]

    def choose(self, state: BatchState) -> Decision:
        """The next graph of the record; the last one again where the simulation goes on for longer."""
        graph = self._left.pop() if len(self._left) > 1 else self._left[0]
        budget = graph.verification_budget
        drafts = NO_DRAFTS if budget is None else drafts_under(budget, state.lanes) or NO_DRAFTS
        return Decision(graph, Purpose.ORDINARY, drafts, self.cost_model.name, NOTHING_CHARGED, None)


def closed_loop(
    cell: CellExecutions, model: str, seeds: int, on_run: Callable[[], object] = lambda: None
) -> ClosedLoop:
    """Simulate the cell under a model, under its recorded choices and under its recorded model, `seeds` times each.

    Args:
        cell: The cell, with what the model may learn from before it.
        model: The name of a cost model.
        seeds: Runs of each kind, at least 2.
        on_run: Called after each run; there are `runs_of(cell, seeds)`.

    Raises:
        UnknownCostModelError: no model bears that name.
        NotSimulatedError: its record is too short, or lacks what a fit needs.
        CallError: the cell has no decision that can be taken again.
    """
    cost_model_named(model)
    try:
        return fitted_loop(cell, model, seeds, on_run)
    except (SchedulerError, SimulatorError) as wrong:
        raise NotSimulatedError(f"cell {cell.cell} fits no engine: {wrong}") from wrong


def fitted_loop(cell: CellExecutions, model: str, seeds: int, on_run: Callable[[], object]) -> ClosedLoop:
    """The same, once the call is known to be right."""
    fit = fitted(cell)
    recorded = known_model_of(cell)

    def runs(scheduler: Callable[[], Scheduler]) -> tuple[Simulated, ...]:
        made = []
        for seed in range(seeds):
            made.append(simulated(fit, scheduler(), seed))
            on_run()
        return tuple(made)

    under_model = runs(lambda: scheduler_of(cell, fit, model))
    choices = runs(lambda: RecordedChoices(fit))
    under_recorded = runs(lambda: scheduler_of(cell, fit, recorded)) if recorded else ()
    sampled = acceptance_error(cell, fit, simulated_executions(fit, scheduler_of(cell, fit, model), seed=0))
    return result_of(
        cell, fit, under_model=under_model, choices=choices, under_recorded=under_recorded, sampled=sampled
    )


def runs_of(cell: CellExecutions, seeds: int) -> int:
    """How many runs `closed_loop` makes."""
    return seeds * (3 if known_model_of(cell) else 2)


def recorded_model_of(cell: CellExecutions) -> str:
    """The cost model that was in charge at the end, as the record names it; '' if it names none."""
    return next((one.scheduler_cost_model for one in reversed(cell.executions) if one.scheduler_cost_model), "")


def known_model_of(cell: CellExecutions) -> str:
    """The same; '' if it is none that is known here, so that it cannot be simulated."""
    recorded = recorded_model_of(cell)
    return recorded if recorded in COST_MODELS else ""


def scheduler_of(cell: CellExecutions, fit: Fit, model: str) -> Scheduler:
    """The live scheduler as it would have stood at the cell's first decision under that model."""
    settings = SchedulerSettings(
        calibration_executions=0,
        acceptance_prior=fit.believed_acceptance,
        probe_interval_ns=fit.probe_interval_ns,
    )
    return Scheduler(tuple(fit.scenario.engine.graph_gpu_ns), warm(cell, fit, model), settings)


def warm(cell: CellExecutions, fit: Fit, model: str) -> CostModel:
    """A model that has learnt from everything stored before the cell's first decision.

    A graph that was not executed before is taken for measured once, at what the record first charged it, as a
    queued execution: else it would never be chosen.
    """
    learning = cost_model_named(model)
    for one in (*cell.before, *fit.head):
        learning.record(measurement_of(one, observed_at(one) - fit.began_at))
    first = fit.rounds[0]
    charged = zip(first.scheduler_candidate_graphs, first.scheduler_candidate_estimates_ns, strict=True)
    charged_ns = dict(charged)
    for graph, device_ns in fit.scenario.engine.graph_gpu_ns.items():
        if learning.estimate(graph.name, 0) is None:
            times_ns = charged_ns.get(graph.name, device_ns)
            learning.record(Measurement(graph.name, times_ns, times_ns, False, False, Purpose.REFRESH, 0))
    return learning


def simulated(fit: Fit, scheduler: Scheduler, seed: int) -> Simulated:
    """One run, counted as the record is.

    Raises:
        NotSimulatedError: nothing was emitted within the cell's time.
    """
    executions = simulated_executions(fit, scheduler, seed)
    if not any(one.batch_tokens_emitted for one in executions):
        raise NotSimulatedError("the record is too short, in its time the simulated engine emits nothing")
    return counted(executions)


def simulated_executions(fit: Fit, scheduler: Scheduler, seed: int) -> list[GraphExecution]:
    """The executions of one run, up to the cell's last submission; those before the first decision are recorded ones."""
    executions: list[GraphExecution] = []
    engine = SimulatedEngine(
        fit.scenario,
        scheduler.cost_model,
        seed,
        on_execution=executions.append,
        labels=CellLabels(epoch_unix_ns=fit.began_at),
    )
    engine.scheduler = scheduler
    for delay in fit.stumbles:
        engine.delay_at(*delay)
    engine.run(fit.last_submitted_ns)
    for _ in range(DRAIN_ROUNDS):
        engine.step()
    last_at = fit.began_at + fit.last_submitted_ns
    return [*fit.head, *(one for one in executions if one.started_at <= last_at)]


def counted(executions: Sequence[GraphExecution]) -> Simulated:
    """Tokens per second and plain fraction, as `docs/metrics.md` defines them."""
    totals = Totals(has_speculative=True)
    for one in executions:
        totals.add(one.graph_kind, one.graph_purpose, one.graph_wall_time_ns, one.batch_tokens_emitted or 0)
    elapsed_ns = max(map(observed_at, executions)) - executions[0].started_at
    rounds = Counter(one.graph_name for one in executions)
    return Simulated(totals.tokens_emitted * 1e9 / max(elapsed_ns, 1), totals.plain_fraction, rounds)


def result_of(
    cell: CellExecutions,
    fit: Fit,
    *,
    under_model: tuple[Simulated, ...],
    choices: tuple[Simulated, ...],
    under_recorded: tuple[Simulated, ...],
    sampled: float,
) -> ClosedLoop:
    """Put the runs together; `sampled` is how far off the fit of acceptance may be, over its mean."""
    filled = with_lost_ones(cell.executions)
    recorded = counted(filled)
    speeds = [one.tokens_per_s for one in under_model]
    mean = statistics.fmean(speeds)
    preferred = preferred_of(sum((Counter(one.rounds) for one in under_model), Counter()))
    calibration = abs(mean_tokens_per_s(choices) / recorded.tokens_per_s - 1)
    return ClosedLoop(
        mean,
        error_percent(speeds, sampled, calibration),
        statistics.fmean(one.plain_fraction for one in under_model),
        under_model,
        recorded.tokens_per_s,
        recorded.plain_fraction,
        choices,
        under_recorded,
        (
            *fit.notes,
            *notes_on_slow_host(cell.executions, preferred),
            *notes_on_lost_ones(cell.executions),
            *notes_on_model(recorded_model_of(cell)),
        ),
    )


def with_lost_ones(executions: Sequence[GraphExecution]) -> tuple[GraphExecution, ...]:
    """The executions, each one that was never recorded taken for a round like the one before it.

    Where more are missing than there are, they are left out: nothing could be said of them.
    """
    if executions_lost(executions) > len(executions):
        return tuple(executions)
    filled = list(executions[:1])
    for one in executions[1:]:
        filled += [filled[-1]] * (one.graph_sequence - filled[-1].graph_sequence - 1)
        filled.append(one)
    return tuple(filled)


def notes_on_lost_ones(executions: Sequence[GraphExecution]) -> tuple[str, ...]:
    """What is taken for recorded although it was lost."""
    lost = executions_lost(executions)
    if not lost:
        return ()
    if lost > len(executions):
        return (f"{in_words(lost, 'execution')} lost, more than there are: the recorded tokens/s are too low",)
    return (f"{in_words(lost, 'execution')} lost; each is counted as one more round like the one before it",)


def error_percent(speeds: Sequence[float], acceptance_error: float, calibration: float) -> float:
    """Half the 95 % prediction interval of one run, in per cent: luck of a run, sampling of the fit, its misfit.

    The three are independent: how runs of one fit differ; how far off the accepted tokens of a cell may be as a
    measure of acceptance; and how far the simulation of the recorded choices is off the record.
    """
    from scipy import stats  # noqa: PLC0415 (takes a second)

    mean = statistics.fmean(speeds)
    spread = statistics.stdev(speeds) / mean * (1 + 1 / len(speeds)) ** 0.5
    sampled = (spread**2 + acceptance_error**2) ** 0.5 * stats.t.ppf(0.975, len(speeds) - 1)
    return float(100 * (sampled**2 + calibration**2) ** 0.5)


def notes_on_model(recorded: str) -> tuple[str, ...]:
    """What is said of a model in charge that is none of those here."""
    if not recorded or recorded in COST_MODELS:
        return ()
    return (f"the model in charge, {recorded}, is not simulated: it is none of {', '.join(COST_MODELS)}",)

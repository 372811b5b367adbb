"""Replay a stored cell: `replayed(url, "", "bench-r014", "drained_share")`."""

import uuid
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named
from queries.errors import CallError, NotSimulatedError
from queries.known_by_then import observed_at
from queries.record import HISTORY_S, CellExecutions, executions_of
from queries.replay.closed_loop import closed_loop, recorded_model_of, runs_of
from queries.replay.exact import can_be_taken_again, decisions_again
from queries.replay.history import history_of
from queries.replay.result import ClosedLoop, ExactReplay, Replay
from queries.replay.rounds import as_recorded, by_rounds
from queries.replay.slow_host import notes_on_slow_host, preferred_of

SEEDS: Final = 16
"""Runs of each kind: their mean is then off by a quarter of what one run is."""
SEEDS_MAX: Final = 1000


class Form(StrEnum):
    """Which replay."""

    EXACT = "exact"
    CLOSED_LOOP = "closed-loop"
    BOTH = "both"


def unheard(done: int, total: int) -> None:
    """Nobody listens how far it is."""


def replayed(
    url: str,
    service_instance_id: str,
    cell: str,
    model: str,
    *,
    form: Form = Form.BOTH,
    seeds: int = SEEDS,
    history_s: float = HISTORY_S,
    on_progress: Callable[[int, int], object] = unheard,
) -> Replay:
    """What another cost model would have done with a stored cell.

    Args:
        url: ClickHouse.
        service_instance_id: The engine; '' where only one has a cell of that name.
        cell: As `cells` names it.
        model: A cost model of `engine_hooks.cost_model`.
        form: Exact, closed loop (a simulation), or both.
        seeds: Runs of each kind in the closed loop, 2 to `SEEDS_MAX`.
        history_s: How far back the model may learn from the same engine, in seconds.
        on_progress: Called with simulated runs done and to do.

    Raises:
        CallError: the model or the cell is unknown, several engines have it, or a number is out of range.
        QueriesError: ClickHouse does not answer, or refuses.
    """
    check(model, seeds)
    return replay_of(
        executions_of(url, service_instance_id, cell, history_s),
        model,
        form=form,
        seeds=seeds,
        on_progress=on_progress,
    )


def check(model: str, seeds: int) -> None:
    """Refuse a wrong call before anything is read.

    Raises:
        CallError: no model bears that name, or the seeds are too few or too many.
    """
    if model not in COST_MODELS:
        raise CallError(f"no cost model is called {model!r}; there are {', '.join(COST_MODELS)}")
    if not 2 <= seeds <= SEEDS_MAX:
        raise CallError(f"seeds must be 2 to {SEEDS_MAX}, not {seeds}: one run alone states no error")


def replay_of(
    cell: CellExecutions,
    model: str,
    *,
    form: Form = Form.BOTH,
    seeds: int = SEEDS,
    on_progress: Callable[[int, int], object] = unheard,
) -> Replay:
    """The same, of executions at hand.

    Raises:
        CallError: the model is unknown, or no decision of the cell can be taken again.
        NotSimulatedError: a simulation alone was asked for, and cannot be made.
    """
    check(model, seeds)
    rounds = by_rounds(cell)
    cell = rounds.cell
    exact = None if form == Form.CLOSED_LOOP else as_recorded(exact_replay(cell, model), rounds)
    loop, not_simulated = None, ""
    if form != Form.EXACT:
        try:
            loop = simulation(cell, model, seeds, on_progress)
        except NotSimulatedError as wrong:
            if not exact:
                raise
            not_simulated = wrong.why
    return Replay(
        uuid.uuid4().hex,
        cell.engine.service_instance_id,
        cell.cell,
        model,
        recorded_model_of(cell),
        {"seeds": str(seeds if loop else 0), "history_s": f"{history_of(cell).seconds:.3f}"},
        cell.executions[0].started_at,
        max(map(observed_at, cell.executions)),
        exact,
        loop,
        not_simulated,
        cell.executions_dropped,
        rounds.drafting,
    )


def exact_replay(cell: CellExecutions, model: str) -> ExactReplay:
    """The exact form of a cell.

    Raises:
        CallError: no decision of it can be taken again.
    """
    everything = (*cell.before, *cell.executions)
    decisions = tuple(decisions_again(everything, cost_model_named(model), cell.executions[0].started_at))
    if not decisions:
        raise CallError(f"cell {cell.cell} records of no decision what it was chosen from: there is nothing to replay")
    unusable = sum(bool(one.scheduler_candidate_graphs) and not can_be_taken_again(one) for one in cell.executions)
    exact = ExactReplay(decisions, unusable, history_of(cell))
    chosen = Counter(one.replayed_graph_name for one in exact.ordinary)
    return exact._replace(notes=notes_on_slow_host(cell.executions, preferred_of(chosen)))


def simulation(cell: CellExecutions, model: str, seeds: int, on_progress: Callable[[int, int], object]) -> ClosedLoop:
    """The closed loop of a cell, heard of run by run."""
    total = runs_of(cell, seeds)
    done = 0

    def on_run() -> None:
        nonlocal done
        done += 1
        on_progress(done, total)

    return closed_loop(cell, model, seeds, on_run)

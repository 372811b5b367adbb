"""Many cells on many cores. A cell depends on its task alone, so neither order nor cores change a figure."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import Final, NamedTuple

from engine_hooks.simulator.cell import CellResult, run_cell
from engine_hooks.simulator.parameters import Scenario

CELLS_ALONE_MAX: Final = 16
"""So few cells are done before other processes would have started."""
CHUNK_MAX: Final = 16
"""Cells handed to a process at a time: about a second's work."""


class CellTask(NamedTuple):
    """One cell to run."""

    scenario: Scenario
    policy: str
    seed: int


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_cells(tasks: Sequence[CellTask], jobs: int, on_done: Callable[[], object]) -> list[CellResult]:
    """The results of the tasks, in their order, from `jobs` processes; `on_done` is called after each."""
    results = []
    for result in _results(tasks, jobs):
        results.append(result)
        on_done()
    return results


def _results(tasks: Sequence[CellTask], jobs: int) -> Iterator[CellResult]:
    if jobs == 1 or len(tasks) <= CELLS_ALONE_MAX:
        yield from map(_run, tasks)
        return
    # Spawned, not forked: gRPC's and numpy's threads do not survive a fork.
    with ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn"), _enter_worker) as pool:
        try:
            yield from pool.map(_run, tasks, chunksize=max(1, min(CHUNK_MAX, len(tasks) // (4 * jobs))))
        finally:
            pool.shutdown(cancel_futures=True)


def _run(task: CellTask) -> CellResult:
    return run_cell(task.scenario, task.policy, task.seed)


def _enter_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent has ended, however it did."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

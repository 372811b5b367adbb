"""What the SGLang plugin costs the scheduler's thread a step.

`make bench-sglang`. Classes in the shape of SGLang's, speculative steps of 32 requests, with the hooks and by
themselves by turns; CPU time, the median of repeats. SGLang itself does not run here.
"""

import statistics
import time
from typing import Final

from tests.benchmarks.report import Result, show, table_of
from tests.fixtures.sglang_engines import Engine

LANES: Final = 32


def results(quick: bool) -> list[Result]:
    """As `tests.benchmarks.report` asks for."""
    n, repeats = (500, 3) if quick else (2_000, 11)
    turns = [(_step_us(n, hooked=True), _step_us(n, hooked=False)) for _ in range(repeats)]
    hooked, bare = (statistics.median(side) for side in zip(*turns, strict=True))
    return [Result.of("sglang: CPU of a step, with hooks against without", hooked, bare, "µs", n)]


def _step_us(n: int, *, hooked: bool) -> float:
    engine = Engine(speculates=True)
    batches = [engine.batch(lanes=LANES) for _ in range(n)]
    began_ns = time.process_time_ns()
    (engine.run if hooked else engine.run_bare)(list(batches))
    return (time.process_time_ns() - began_ns) / n / 1_000


if __name__ == "__main__":
    show(table_of(results(quick=False), "What the SGLang plugin costs"))

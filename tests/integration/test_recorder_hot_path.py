"""What recording may cost, held to its promise beside the SDK in one run.

Measured in a process of its own: CPU time is counted by the process, and in this one threads of other tests still run.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from tests.benchmarks.bench_recorder import measure, measure_delivery
from tests.benchmarks.report import Result


def in_a_process_of_its_own(measuring: Callable[[], list[Result]]) -> list[Result]:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(measuring).result()


def test_record_costs_a_fiftieth_of_the_sdk() -> None:
    record = in_a_process_of_its_own(partial(measure, n=500, repeats=5))[0]
    assert record.ratio is not None
    assert record.ratio <= 1 / 50
    assert record.ours < 1_000


def test_delivery_costs_a_quarter_of_the_sdk_with_its_exporter() -> None:
    background, whole, waiting, *_ = in_a_process_of_its_own(partial(measure_delivery, n=2_000, repeats=7))
    assert background.ratio is not None
    assert whole.ratio is not None
    assert waiting.ratio is not None
    assert max(background.ratio, whole.ratio, waiting.ratio) <= 1 / 4

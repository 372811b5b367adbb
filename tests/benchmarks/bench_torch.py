"""What timing an execution by events costs the engine's thread, beside the SDK's span, in one run.

`make bench-torch`. Ours by turns with the reference; every figure is the median of repeats. The SDK's side has neither
processor nor exporter. On CUDA only where there is a GPU.
"""

import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

from engine_hooks.adapters.device.event_source import HostInstant
from engine_hooks.adapters.device.executions import DeviceExecutions
from engine_hooks.adapters.device.tracker import TrackerSettings
from engine_hooks.adapters.torch_cpu.device_queue import DeviceQueue, QueueEvent
from engine_hooks.adapters.torch_cpu.event_source import QueueEventSource
from engine_hooks.adapters.torch_cuda.event_source import CudaEventSource
from engine_hooks.contract.names import GpuTimeSource, GraphKind
from engine_hooks.recorder.recorder import Recorder
from tests.benchmarks.bench_recorder import ENGINE, SPAN_NAME, Discard, _provider, attributes
from tests.benchmarks.report import Result, show, table_of

PACKAGES: Final = ("opentelemetry-sdk", "torch")
PAIRS: Final = 64


class Instant:
    """An event of a device that does everything at once."""


class InstantDevice:
    """An event source that costs nothing: what is left is the state machine."""

    gpu_time_source = GpuTimeSource.HOST

    def new_event(self) -> Instant:
        return Instant()

    def available(self) -> bool:
        return True

    def current_stream(self) -> object:
        return None

    def record(self, event: Instant, stream: object) -> None:
        pass

    def done(self, event: Instant) -> bool:  # noqa: ARG002
        return True

    def elapsed_ns(self, earlier: Instant, later: Instant) -> int:  # noqa: ARG002
        return 1_000

    def run_ns(self, start: Instant, end: Instant, elapsed_ns: int) -> int:  # noqa: ARG002
        return elapsed_ns

    def anchor(self, event: Instant) -> HostInstant:  # noqa: ARG002
        return HostInstant(time.monotonic_ns(), 0)


def measure(source: Any, name: str, n: int, repeats: int, settle: Callable[[], object] = lambda: None) -> list[Result]:
    """Submissions, and polls with records, of one source, `n` in each of `repeats`."""
    recorder = Recorder(ENGINE, exporter=Discard(), capacity=n, interval_s=3_600)
    executions: DeviceExecutions[Any] = DeviceExecutions(source, recorder.record, settings=TrackerSettings(pairs=n + 1))
    tracer = _provider().get_tracer("bench")
    ready = [attributes(sequence) for sequence in range(n)]

    def submit() -> None:
        for _ in range(n):
            with executions.measured("P128", GraphKind.SPECULATIVE):
                pass

    def span() -> None:
        for one in ready:
            tracer.start_span(SPAN_NAME, attributes=one).end()

    spent: dict[str, list[float]] = {"submission": [], "poll": [], "span": []}
    recorder.start()
    try:
        for _ in range(repeats):
            spent["submission"].append(_each_ns(submit, n))
            settle()
            spent["poll"].append(_each_ns(executions.poll, n))
            spent["span"].append(_each_ns(span, n))
            recorder.flush()
    finally:
        recorder.stop()
    if any(executions.losses.values()) or any(recorder.losses.values()):
        raise AssertionError(f"some were not measured: {executions.losses}, {recorder.losses}")
    result = partial(_result, reference_ns=statistics.median(spent["span"]), n=n)
    return [
        result(f"{name}: two events a submission", statistics.median(spent["submission"])),
        result(f"{name}: poll + record an execution", statistics.median(spent["poll"])),
    ]


def _result(name: str, ours_ns: float, reference_ns: float, n: int) -> Result:
    return Result.of(f"torch: {name}, against SDK start_span + end", ours_ns, reference_ns, "ns", n, *PACKAGES)


def _each_ns(side: Callable[[], object], n: int) -> float:
    began_ns = time.perf_counter_ns()
    side()
    return (time.perf_counter_ns() - began_ns) / n


def measure_memory() -> Result:
    """What a pool takes, on the CPU: made once, never more."""
    with DeviceQueue() as queue:
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        executions = DeviceExecutions(QueueEventSource(queue), [].append, settings=TrackerSettings(pairs=PAIRS))
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        executions.close()
    return Result.of(f"torch: memory of a pool of {PAIRS} event pairs", after - before, None, "bytes", PAIRS, *PACKAGES)


def results(quick: bool) -> list[Result]:
    """As `tests.benchmarks.report` asks for."""
    n, repeats = (200, 5) if quick else (400, 25)
    rows = measure(InstantDevice(), "state machine alone", n, repeats)
    with DeviceQueue() as queue:
        rows += measure(QueueEventSource(queue), "CPU queue", n, repeats, partial(_drain, queue))
    if torch.cuda.is_available():
        source = CudaEventSource(torch.device("cuda", torch.cuda.current_device()))
        rows += measure(source, "CUDA", n, repeats, torch.cuda.synchronize)
    return [*rows, measure_memory()]


def _drain(queue: DeviceQueue) -> None:
    """Waits until the queue's thread has come to the last event."""
    last = QueueEvent()
    queue.record(last)
    last.wait(10)


if __name__ == "__main__":
    show(table_of(results(quick=False), "What timing by events costs"))

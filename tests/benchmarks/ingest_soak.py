"""A soak: four senders at full speed for long; is the collector's memory flat, and is nothing lost?"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from scipy import stats

from tests.benchmarks.ingest_load import DOORS, Sent, requests_of, send_all
from tests.benchmarks.process_costs import costs_of
from tests.fixtures.running import Addresses

SOAK_DOORS = ("gRPC", "gRPC", "HTTP protobuf", "HTTP protobuf")
SPANS = 500
"""Executions of one request."""
MEMORY_TREND_MAX_MB_PER_MINUTE = 1.0
"""Memory is flat where its trend is shown to be below this: all of the interval."""
WINDOW_MINUTES = 5
STRETCH_S = 90
"""Longer than the engine takes from one letting go of merged parts to the next, so that each has such a moment."""
_SETTLED_AFTER = 0.25
"""The share of a soak that passes before its memory is looked at: caches fill, and merges reach their full size."""
_NEARLY_S = 30.0
"""A stretch that lacks no more than this at its end is whole: points are some seconds apart, more on a busy machine."""


class Soaked(Protocol):
    """A collector that runs."""

    @property
    def addresses(self) -> Addresses: ...
    @property
    def pid(self) -> int: ...
    def stored(self) -> int: ...
    def wait_until_stored(self, executions: int, deadline_s: float = ...) -> None: ...


class Trend(NamedTuple):
    """A line through the least memory of each 90 s, after the first quarter.

    An insert and a merge take memory for seconds, and parts that were merged for a minute: what is never given back
    raises the least as well, which swings half as much.
    """

    mb_per_minute: float
    low: float
    high: float
    """95 % interval of the slope."""
    stretches: int
    """How many times 90 s."""

    @property
    def is_flat(self) -> bool:
        return self.high < MEMORY_TREND_MAX_MB_PER_MINUTE


class Window(NamedTuple):
    """Memory in some minutes of a soak."""

    from_minute: int
    least_mb: float
    mean_mb: float


def soak(collector: AbstractContextManager[Soaked], minutes: float, every_s: float, say: Callable[[str], None]) -> dict[str, Any]:  # fmt: skip
    """Figures of the whole, and memory and executions stored every few seconds."""
    with collector as running:
        end = time.monotonic() + minutes * 60
        curve: list[dict[str, float]] = []
        watching = threading.Thread(target=_watch, args=(running, end, every_s, curve, say))
        watching.start()
        sent = [_soaked(running, name, n, end) for n, name in enumerate(SOAK_DOORS)]
        totals = [result() for result in sent]
        watching.join()
        spans = sum(one.acknowledged for one in totals) * SPANS
        running.wait_until_stored(spans, 300)
        stored, peak = running.stored(), costs_of(running.pid).memory_peak_bytes
    return {
        "minutes": minutes,
        "acknowledged": spans,
        "stored": stored,
        "turned_away": sum(one.turned_away for one in totals),
        "acknowledged_ms": _acknowledged_ms(totals),
        "memory_peak_bytes": peak,
        "memory_trend": trend._asdict() if (trend := trend_of(curve)) else None,
        "memory_windows": [window._asdict() for window in windows_of(curve)],
        "curve": curve,
    }


def trend_of(curve: Sequence[dict[str, float]]) -> Trend | None:
    """None where there are fewer than four times 90 s to fit: points within one lean on each other."""
    settled_s = int(curve[-1]["at_s"] * _SETTLED_AFTER)
    least = {at_s / 60: min(seen) for at_s, seen in _memory_by(STRETCH_S, curve, settled_s)}
    if len(least) < 4:
        return None
    fit = stats.linregress(list(least), list(least.values()))
    half = float(stats.t.ppf(0.975, len(least) - 2) * fit.stderr)
    return Trend(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half, len(least))


def windows_of(curve: Sequence[dict[str, float]]) -> list[Window]:
    """Five minutes after five minutes, for people to look at."""
    stretches = _memory_by(WINDOW_MINUTES * 60, curve)
    return [Window(at_s // 60, min(seen), statistics.fmean(seen)) for at_s, seen in stretches]


def _memory_by(stretch_s: int, curve: Sequence[dict[str, float]], from_s: int = 0) -> Iterator[tuple[int, list[float]]]:  # fmt: skip
    """Where each stretch begins, in s, and memory in it; those that lie in the curve whole."""
    for at_s in range(from_s, int(curve[-1]["at_s"] + _NEARLY_S) - stretch_s + 1, stretch_s):
        yield at_s, [point["memory_mb"] for point in curve if at_s <= point["at_s"] < at_s + stretch_s]


def complaints(measured: dict[str, Any]) -> list[str]:
    """What a soak must not show."""
    found = []
    if measured["stored"] != measured["acknowledged"]:
        found.append(f"{measured['acknowledged']:,} executions acknowledged, {measured['stored']:,} stored")
    trend = measured["memory_trend"]
    if trend and not Trend(**trend).is_flat:
        found.append(
            f"memory is not flat: {trend['mb_per_minute']:+.1f} [{trend['low']:.1f}, {trend['high']:.1f}] MB a minute,"
            f" to be below {MEMORY_TREND_MAX_MB_PER_MINUTE:+.1f}"
        )
    return found


def _acknowledged_ms(totals: list[Sent]) -> dict[str, dict[str, float]]:
    """How long senders of each door waited."""
    found = {}
    for door in dict.fromkeys(SOAK_DOORS):
        waited = [s for name, one in zip(SOAK_DOORS, totals, strict=True) if name == door for s in one.latencies_s]
        cuts = statistics.quantiles(waited, n=100, method="inclusive")
        found[door] = {"p50": cuts[49] * 1e3, "p99": cuts[98] * 1e3, "max": max(waited) * 1e3}
    return found


def _soaked(running: Soaked, door: str, number: int, end: float) -> Callable[[], Sent]:
    """One sender, started; what it saw, once it has ended."""
    seen: list[Sent] = []

    def fresh() -> Iterator[bytes]:
        for request in requests_of(f"soak {number}:1", SPANS, number):
            if time.monotonic() > end:
                return
            yield request

    thread = threading.Thread(target=lambda: seen.append(send_all(DOORS[door], running.addresses, [fresh()])))
    thread.start()

    def result() -> Sent:
        thread.join()
        return seen[0]

    return result


def _watch(running: Soaked, end: float, every_s: float, curve: list[dict[str, float]], say: Callable[[str], None]) -> None:  # fmt: skip
    began, said = time.monotonic(), -1
    while time.monotonic() < end:
        costs = costs_of(running.pid)
        point = {
            "at_s": round(time.monotonic() - began, 1),
            "memory_mb": round(costs.memory_bytes / 1e6),
            "memory_own_mb": round(costs.memory_own_bytes / 1e6),
            "stored": running.stored(),
            "cpu_s": costs.cpu_s,
        }
        curve.append(point)
        if (minute := int(point["at_s"] // 60)) > said:
            said = minute
            say(
                f"{point['at_s']:6.0f} s  {point['memory_mb']:6,.0f} MB, {point['memory_own_mb']:6,.0f} of them no file's"
                f"  {point['stored']:12,.0f} stored"
            )
        time.sleep(max(0.0, min(every_s, end - time.monotonic())))

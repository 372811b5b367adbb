"""Figures that are read where they are kept, at each scrape: the spool's, what is seen to now and again, the clocks of hosts."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from collector.repeated_look import LookState
from collector.sampling.sampling import Sampled
from collector.spool.database import disk_bytes
from collector.spool.spool import Spool
from collector.store.bound import BoundState
from collector.telemetry.clock_offsets import ClockOffset

_LEDGER: Final = {
    "received": "Spans accepted, by door: on disk before they were acknowledged.",
    "stored": "Spans stored as graph executions, by door.",
    "deduplicated": "Spans that came before and were stored once, by door.",
    "refused": "Spans refused because they break the contract, by door.",
    "other_spans": "Spans accepted that are no graph executions and are not kept, by door.",
}
_LEDGER_NOW: Final = {
    "set_aside": "Spans in requests that ClickHouse refuses, kept with its words, by door.",
    "pending": "Spans that wait to be stored, by door.",
}


class SpoolMetrics(Collector):
    """The ledger and the state of a spool. The ledger lasts: it does not begin anew with the process."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    def collect(self) -> Iterator[Metric]:
        """One family for each column of the ledger, and one for each figure of the spool."""
        ledger = self._spool.ledger()
        for name, meaning in _LEDGER.items():
            counter = CounterMetricFamily(f"tachograph_ledger_{name}", f"Ledger: {meaning}", labels=["door"])
            for door, entries in ledger.items():
                counter.add_metric([door], getattr(entries, name))
            yield counter
        for name, meaning in _LEDGER_NOW.items():
            gauge = GaugeMetricFamily(f"tachograph_ledger_{name}", f"Ledger: {meaning}", labels=["door"])
            for door, entries in ledger.items():
                gauge.add_metric([door], getattr(entries, name))
            yield gauge
        yield from self._state()

    def _state(self) -> Iterator[Metric]:
        state, limits = self._spool.state(), self._spool.limits
        age_s = max(0.0, time.time() - state.oldest_unix_ms / 1e3) if state.oldest_unix_ms else 0.0
        for name, meaning, value in (
            ("spool_requests", "Requests in the spool that wait to be stored.", state.pending_requests),
            ("spool_bytes", "Bytes of the requests in the spool that wait to be stored.", state.pending_bytes),
            ("spool_oldest_age_seconds", "Age of the oldest request that waits; 0 where none does.", age_s),
            ("spool_set_aside_requests", "Requests that ClickHouse refuses, kept aside.", state.set_aside_requests),
            ("spool_set_aside_bytes", "Bytes of the requests kept aside.", state.set_aside_bytes),
            ("spool_limit_bytes", "Bytes at which requests are turned away; 0 is no bound.", limits.bytes_max),
            ("disk_free_bytes", "Bytes free on the spool's disk.", disk_bytes(self._spool.file).free),
            ("disk_free_limit_bytes", "Free bytes below which requests are turned away.", limits.free_bytes_min),
        ):
            yield GaugeMetricFamily(f"tachograph_{name}", meaning, value=value)


class StoreMetrics(Collector):
    """The embedded store's size and its bound."""

    def __init__(self, state: Callable[[], BoundState]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """One family for each figure."""
        state = self._state()
        for name, meaning, value in (
            ("store_bytes", "Bytes of the embedded store's parts.", state.bytes),
            ("store_limit_bytes", "Bytes at which its oldest executions are dropped; 0 is no bound.", state.bytes_max),
        ):
            yield GaugeMetricFamily(f"tachograph_{name}", meaning, value=value)
        yield CounterMetricFamily(
            "tachograph_store_dropped_rows", "Executions dropped because the store was full.", value=state.dropped_rows
        )


class SamplingMetrics(Collector):
    """What sampling did to the store, as far back as it is remembered there."""

    def __init__(self, sampled: Callable[[], Sampled | None]) -> None:
        self._sampled = sampled

    def collect(self) -> Iterator[Metric]:
        """One family for each figure; 0 where sampling is off."""
        sampled = self._sampled() or Sampled()
        for name, meaning, value in (
            ("sampling_examined_cells", "Cells that sampling examined, of the last 180 days.", sampled.examined_cells),
            (
                "sampling_dropped_cells",
                "Healthy cells among them that are kept as rollups only.",
                sampled.dropped_cells,
            ),
            (
                "sampling_dropped_executions",
                "Executions of those cells, which were dropped.",
                sampled.dropped_executions,
            ),
        ):
            yield GaugeMetricFamily(f"tachograph_{name}", meaning, value=value)


class LookMetrics(Collector):
    """What is seen to now and again: judging, sampling and the store's bound, by `look`."""

    def __init__(self, looks: Callable[[], Mapping[str, LookState]]) -> None:
        self._looks = looks

    def collect(self) -> Iterator[Metric]:
        """One family for each figure, one sample for each look."""
        failed = CounterMetricFamily("tachograph_looks_failed", "Looks that failed.", labels=["look"])
        failing = GaugeMetricFamily(
            "tachograph_looks_failing_seconds",
            "Time since looks began to fail; 0 where the last one went well.",
            labels=["look"],
        )
        done = GaugeMetricFamily(
            "tachograph_looks_done_age_seconds", "Time since the last look that went well.", labels=["look"]
        )
        for name, look in self._looks().items():
            failed.add_metric([name], look.failed_looks)
            failing.add_metric([name], look.failing_s)
            done.add_metric([name], look.done_s_ago)
        yield from (failed, failing, done)


class ClockMetrics(Collector):
    """The hosts whose clocks are off."""

    def __init__(self, offsets: Callable[[], list[ClockOffset]]) -> None:
        self._offsets = offsets

    def collect(self) -> Iterator[Metric]:
        """One sample for each such host."""
        gauge = GaugeMetricFamily(
            "tachograph_host_clock_offset_seconds",
            "Clock of a host less the collector's: above 0 it is ahead, below 0 behind. Of hosts that are off by more than "
            "30 s; 100 at most.",
            labels=["host"],
        )
        for offset in self._offsets():
            gauge.add_metric([offset.host], offset.offset_s)
        yield gauge

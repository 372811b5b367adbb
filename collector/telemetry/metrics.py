"""The collector's own health, for Prometheus. Kept apart from the executions it stores."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

from collector.acceptance import Outcome


class CollectorMetrics:
    """Counters of one collector, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("otlp_requests", "OTLP requests answered, by door and status.", "door", "status")
        self.request_bytes = self._counter(
            "otlp_request_bytes", "Bytes of OTLP requests answered, decompressed, by door and status.", "door", "status"
        )
        self.stored = self._counter("executions_stored", "Graph executions stored.")
        self.refused = self._counter(
            "executions_refused", "Graph executions refused because they break the contract, by reason.", "reason"
        )
        self.other_spans = self._counter("other_spans", "Spans accepted that are no graph executions; not kept.")
        self.deduplicated = self._counter(
            "executions_deduplicated", "Graph executions not stored, because their span was stored before."
        )
        self.clock_trouble = self._counter(
            "executions_clock_trouble", "Graph executions stored though their times contradict each other."
        )
        self.duplicates = self._counter("duplicate_requests", "Requests that came again and were stored once.")
        self.turned_away = self._counter(
            "requests_turned_away",
            "Requests that there was no room for; their senders were told to come back.",
            "reason",
        )
        self.not_admitted = self._counter(
            "requests_not_admitted",
            "Requests and connections turned away unread, by door (grpc, http, sql) and reason: credentials, limits.",
            "door",
            "reason",
        )
        self.insert_failures = self._counter("insert_failures", "Failed attempts to insert a batch, by error.", "error")
        self.insert_duration = Histogram(
            "tachograph_insert_duration_seconds",
            "Time to store one batch, from the look-up of duplicates to the outcomes.",
            registry=self.registry,
            buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
        )
        self.query_duration = Histogram(
            "tachograph_sql_query_duration_seconds",
            "Time to answer one request at the SQL endpoint, waiting and sending included.",
            registry=self.registry,
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
        )
        self.rows_requests = self._counter(
            "rows_requests", "Requests with derived rows answered, by table and status.", "table", "status"
        )
        self.rows_stored = self._counter("rows_stored", "Derived rows acknowledged as stored, by table.", "table")
        self.storing = self._gauge("storing", "1 while executions reach ClickHouse, as /readyz tells; else 0.")
        self.queue_requests = self._gauge("writer_queue_requests", "Requests in memory that wait to be put on disk.")
        self.queue_bytes = self._gauge(
            "writer_queue_bytes", "Bytes of the requests in memory that are not answered yet."
        )
        self.queue_limit_bytes = self._gauge(
            "writer_queue_limit_bytes", "Bytes in memory at which requests are turned away."
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"tachograph_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"tachograph_{name}", meaning, registry=self.registry)

    def count_request(self, door: str, status: str, size: int) -> None:
        """One request was answered at a door (`grpc`, `http`) with this status (`OK`, `400`)."""
        self.requests.labels(door, status).inc()
        self.request_bytes.labels(door, status).inc(size)

    def count_outcome(self, outcome: Outcome) -> None:
        """What became of one request's spans; those of a duplicate were counted the first time."""
        if outcome.duplicate:
            self.duplicates.inc()
            return
        self.stored.inc(outcome.stored)
        self.deduplicated.inc(outcome.deduplicated)
        self.other_spans.inc(outcome.other_spans)
        self.clock_trouble.inc(outcome.clock_trouble)
        for reason, executions in outcome.refused.items():
            self.refused.labels(reason).inc(executions)

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(_WithoutCreationTimes(self.registry))


class _WithoutCreationTimes(Collector):
    """What a registry collects, less the `_created` series: one more for each counter, and nobody asks for them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric

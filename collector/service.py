"""The whole collector in one process: store, writer, and every door."""

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

import structlog
from clickhouse_connect.driver.client import Client
from starlette.routing import Route

from collector.access.access import Access
from collector.backup.making import Source
from collector.control.key import make_key
from collector.control.orders import Holdings, Orders
from collector.data_dir import check_data_dir
from collector.derived_rows import DerivedRows
from collector.disk_space import telling_of_space
from collector.http_server import HttpServer
from collector.judging.judging import CellJudge
from collector.ports import PortTakenError, bind, host_and_port, port_of
from collector.receivers.control import ControlReceiver
from collector.receivers.derived_rows import RowsReceiver
from collector.receivers.guard import GuardedHttp
from collector.receivers.health import HEALTH_PATHS, HealthReceiver
from collector.receivers.limits import DoorLimits
from collector.receivers.otlp_grpc import GrpcReceiver
from collector.receivers.otlp_http import HttpReceiver
from collector.repeated_look import LookState, RepeatedLook
from collector.sampling.rules import SamplingRules
from collector.sampling.sampler import Sampler
from collector.sampling.sampling import Sampled
from collector.spool.database import spool_file
from collector.spool.records import SpoolLimits
from collector.spool.spool import Spool
from collector.sql_endpoint.server import serving_sql
from collector.store.bound import StoreBound
from collector.store.clickhouse import (
    DATABASE,
    WrongSettingError,
    check_engine_path,
    connect,
    connection_string,
    open_store,
    place_of,
    split_url,
    without_password,
)
from collector.store.client import StoreClient
from collector.store.damaged_parts import DamagedParts
from collector.store.opening import StoreOpening, prepare_embedded
from collector.store.retention import parsed_retention
from collector.telemetry.clock_offsets import ClockWatch
from collector.telemetry.health import Health
from collector.telemetry.metrics import CollectorMetrics
from collector.telemetry.own_metrics import ClockMetrics, LookMetrics, SamplingMetrics, SpoolMetrics, StoreMetrics
from collector.telemetry.state import state_of
from collector.writer import Writer, WriterLimits

log = structlog.get_logger(__name__)

GRPC_PORT_SETTING = "TACHOGRAPH_OTLP_GRPC_PORT"
HTTP_PORT_SETTING = "TACHOGRAPH_OTLP_HTTP_PORT"
CLICKHOUSE_PORT_SETTING = "TACHOGRAPH_CLICKHOUSE_PORT"
_CLOSE_WITHIN_S: Final = 1.0
"""For each client of a server: a statement that it owes an answer to ends with the process."""


class CollectorSettings(NamedTuple):
    """Where a collector listens and where it keeps things. Port 0 is any free one."""

    data_dir: Path
    """Directory of the spool, and of the embedded store, unless `clickhouse_url` is given."""
    clickhouse_url: str = ""
    """A ClickHouse server, `http://user:password@host:8123/database`; empty is the embedded one."""
    clickhouse_cluster: str = ""
    """The cluster of that server whose hosts all hold the schema, as its `remote_servers` names it; empty is the server alone."""
    listen_address: str = "127.0.0.1"
    otlp_grpc_port: int = 0
    otlp_http_port: int = 0
    clickhouse_port: int = 0
    """Port of the read-only SQL endpoint; not used when `clickhouse_url` is given."""
    spool_bytes_max: int = SpoolLimits().bytes_max
    """Bytes of requests in the spool beyond which requests are turned away; 0 is no bound."""
    disk_free_bytes_min: int = SpoolLimits().free_bytes_min
    """Bytes of the spool's disk that are left free; 0 is the disk to its last byte."""
    store_bytes_max: int = 0
    """Bytes of the embedded store beyond which its oldest days of executions are dropped; 0 is no bound."""
    retention: str = ""
    """`TABLE=DAYS` pairs: how long tables keep their rows, where the schema's days are not wanted."""
    sampling: SamplingRules | None = None
    """Which healthy cells are kept as rollups only; None keeps all whole."""
    request_bytes_max: int = DoorLimits().request_bytes
    """Bytes of one request, decompressed."""
    request_spans_max: int = DoorLimits().request_spans
    """Spans of one request."""
    requests_at_once_max: int = DoorLimits().requests_at_once
    """Requests in memory at a time, at each door."""
    access: Access = Access()
    """Who may come in, and the certificate that the doors show."""


class Collector:
    """A running collector, also as a context manager. `start` it once, `stop` it once."""

    def __init__(self, settings: CollectorSettings, limits: WriterLimits | None = None) -> None:
        self.settings = settings
        self.metrics = CollectorMetrics()
        self.health = Health()
        self.metrics.storing.set_function(lambda: not self.health.troubles())
        self.otlp_grpc_port = settings.otlp_grpc_port
        """After `start`, the port that was bound; so are the other two."""
        self.otlp_http_port = settings.otlp_http_port
        self.clickhouse_port = settings.clickhouse_port
        self._limits = limits
        self._pinned: dict[str, int] = {}
        self._bound: StoreBound | None = None
        self._opening: StoreOpening | None = None
        self._sampler: Sampler | None = None
        self._looks: list[RepeatedLook] = []
        self._running = ExitStack()

    def start(self) -> None:
        """Take the ports, open the store, bring its schema up to date, and listen.

        Raises:
            AccessError: it would let everybody in from other machines; nothing has been started or made.
            PortTakenError: a port cannot be had; likewise.
            WrongSettingError: settings do not go together; likewise.
            DataDirError: the data directory cannot be made or written.
            StoreError: the embedded store cannot be opened, or the URL of a server is none. A server that is away
                is waited for.
            SchemaError: the embedded store's schema cannot be brought up to date.
            SpoolError: the spool cannot be opened.
            NoSpaceError: the disk has no room for either.
            RetentionError: the setting names a table or days that cannot be.
        """
        self._pinned = parsed_retention(self.settings.retention)
        self.settings.access.check_address(self.settings.listen_address)
        with ExitStack() as starting, telling_of_space(self.settings.data_dir):
            self._start(starting)
            self._running = starting.pop_all()

    def stop(self) -> None:
        """Answer what is under way, store what waits, and end every thread: within a few seconds.

        Of a server that owes an answer to a look, to the insert under way or to a reader, it is waited for a few seconds each.
        """
        self._running.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def urls(self) -> dict[str, str]:
        """Every address this collector answers at, by what answers there."""
        host, scheme = self.settings.listen_address, self.settings.access.scheme
        http = f"{scheme}://{host_and_port(host, self.otlp_http_port)}"
        sql = f"{scheme}://{host_and_port(host, self.clickhouse_port)}/{DATABASE}"
        return {
            "otlp_grpc": f"{scheme}://{host_and_port(host, self.otlp_grpc_port)}",
            "otlp_http": f"{http}/v1/traces",
            "health": f"{http}/healthz",
            "readiness": f"{http}/readyz",
            "metrics": f"{http}/metrics",
            "clickhouse": without_password(self.settings.clickhouse_url) or sql,
        }

    def _start(self, starting: ExitStack) -> None:
        http = starting.enter_context(self._take_ports())
        self._check_store_settings()
        check_data_dir(self.settings.data_dir)
        writer = self._start_writer(starting)
        self._start_grpc(starting, writer)
        if short := writer.want_of_room():
            log.warning("requests are turned away", reason=short)
        self.otlp_http_port = port_of(http)
        self.health.watch("writer", writer.trouble)
        self.health.watch("spool", writer.spool_trouble)
        self._serve(starting, self._http_server(writer, self._further_doors(starting, writer), http))
        starting.callback(writer.hurry)  # Before the doors shut, which wait a second for their answers.
        if not self.settings.clickhouse_url:
            self._serve_sql(starting)
        # A server's CPU time is not told: of it, the time that passes counts.
        work_clock = None if self.settings.clickhouse_url else time.process_time
        self._keep_looking(starting, CellJudge(self._store_client(starting), work_clock=work_clock))
        self._start_sampler(starting)

    def _http_server(self, writer: Writer, further: list[Route], listening: socket.socket) -> HttpServer:
        receiver = HttpReceiver(writer, self.metrics, further, self._door_limits())
        access, count = self.settings.access, self._count_not_admitted
        return HttpServer(
            GuardedHttp(receiver.app, access, count),
            listening,
            "otlp-http",
            certificate=access.certificate,
            count=partial(count, "http"),
            always=HEALTH_PATHS,
        )

    def _door_limits(self) -> DoorLimits:
        wanted = self.settings
        return DoorLimits(wanted.request_bytes_max, wanted.request_spans_max, wanted.requests_at_once_max)

    def _count_not_admitted(self, door: str, reason: str) -> None:
        self.metrics.not_admitted.labels(door, reason).inc()

    def _check_store_settings(self) -> None:
        """Before anything is made: what cannot be is refused without a trace."""
        settings = self.settings
        if settings.clickhouse_url:
            split_url(settings.clickhouse_url)
            if settings.store_bytes_max:
                raise WrongSettingError(
                    "TACHOGRAPH_STORE_BYTES_MAX bounds the embedded store: a server's disks are its operator's"
                )
        elif settings.clickhouse_cluster:
            raise WrongSettingError(
                "TACHOGRAPH_CLICKHOUSE_CLUSTER names a cluster of a server: set TACHOGRAPH_CLICKHOUSE_URL"
            )
        else:
            check_engine_path(settings.data_dir)

    def _start_writer(self, starting: ExitStack) -> Writer:
        """The spool, and what moves it into the store. A server need not be there yet; the embedded store must."""
        settings = self.settings
        # Before the engine, which says in words of its own that another collector holds the directory.
        limits = SpoolLimits(settings.spool_bytes_max, settings.disk_free_bytes_min)
        spool = Spool(spool_file(settings.data_dir), limits)
        starting.callback(spool.close)
        if not settings.clickhouse_url:
            # Stays open, so that the engine does while others open and close their clients of it.
            prepare_embedded(starting.enter_context(self._open()))
            self._bound = self._start_bound(starting)
            damaged_parts = self._look_for_damaged_parts(starting)
        else:
            damaged_parts = None
        opening = StoreOpening(self._open, settings.clickhouse_cluster, self._pinned, damaged_parts)
        self._opening = opening
        starting.callback(opening.close)
        writer = Writer(spool, opening, self.metrics, self._limits, is_store_full=self._is_store_full)
        writer.start()
        starting.callback(writer.stop)
        return writer

    def _start_bound(self, starting: ExitStack) -> StoreBound:
        bound = StoreBound(self._store_client(starting), self.settings.store_bytes_max)
        self._keep_looking(starting, bound)
        self.metrics.registry.register(StoreMetrics(lambda: bound.state))
        self.health.watch("store", bound.trouble)
        return bound

    def _look_for_damaged_parts(self, starting: ExitStack) -> DamagedParts:
        settings = self.settings
        nearly_full_bytes = max(2 * settings.disk_free_bytes_min, SpoolLimits().free_bytes_min)
        parts = DamagedParts(self._store_client(starting), settings.data_dir, nearly_full_bytes)
        self._keep_looking(starting, parts)
        self.health.watch("parts", parts.trouble)
        return parts

    def _store_client(self, starting: ExitStack) -> StoreClient:
        # The embedded engine answers in the end, and must not be closed under a statement.
        store = StoreClient(self._open, close_within_s=_CLOSE_WITHIN_S if self.settings.clickhouse_url else None)
        starting.callback(store.close)
        return store

    def _keep_looking(self, starting: ExitStack, look: RepeatedLook) -> None:
        look.start()
        starting.callback(look.stop)
        self._looks.append(look)

    def _is_store_full(self) -> bool:
        return self._bound is not None and self._bound.state.is_full

    def _start_sampler(self, starting: ExitStack) -> None:
        if self.settings.sampling is None:
            return
        store = self._store_client(starting)
        self._sampler = Sampler(store, self.settings.sampling, self.settings.clickhouse_cluster)
        self._keep_looking(starting, self._sampler)

    def _sampled(self) -> Sampled | None:
        return self._sampler.sampled if self._sampler else None

    def _further_doors(self, starting: ExitStack, writer: Writer) -> list[Route]:
        """What else the HTTP port answers: rows computed from executions, orders, health and metrics."""
        spool = writer.spool
        own, rows = self._store_client(starting), self._store_client(starting)
        self.health.watch("clickhouse", own.trouble)
        self.metrics.registry.register(SpoolMetrics(spool))
        self.metrics.registry.register(ClockMetrics(ClockWatch(own).offsets))
        self.metrics.registry.register(SamplingMetrics(self._sampled))
        self.metrics.registry.register(LookMetrics(self._look_states))
        return [
            *RowsReceiver(DerivedRows(rows), self.metrics).routes,
            *ControlReceiver(self._orders(rows, writer), make_key(self.settings.data_dir)).routes,
            *HealthReceiver(self.health, self.metrics, self._state_of(writer)).routes,
        ]

    def _state_of(self, writer: Writer) -> Callable[[], Mapping[str, Any]]:
        opening = self._opening
        return lambda: state_of(
            writer.spool,
            self._bound,
            self._sampled(),
            self._pinned,
            opening.store_id if opening else "",
            looks=self._look_states(),
            turned_away_for=writer.no_room_in_spool(),
        )

    def _look_states(self) -> Mapping[str, LookState]:
        return {look.name: look.look_state for look in self._looks}

    def _orders(self, store: StoreClient, writer: Writer) -> Orders:
        """By the client that stores computed rows: none are stored while an order is carried out."""
        settings = self.settings
        resting = partial(self._resting, writer)
        source = Source(settings.data_dir, writer.spool.file, resting) if not settings.clickhouse_url else None
        url = place_of(settings.clickhouse_url) if settings.clickhouse_url else ""
        return Orders(Holdings(store.using, settings.clickhouse_cluster, self._pinned, source, url))

    @contextmanager
    def _resting(self, writer: Writer) -> Iterator[None]:
        """Within, nothing changes the store but who is using the client of computed rows. Senders wait the least: they rest last."""
        with ExitStack() as rest:
            for look in self._looks:
                rest.enter_context(look.resting())
            rest.enter_context(writer.resting())
            yield

    def _take_ports(self) -> socket.socket:
        """Try all ports; the HTTP door's stays open. The other two are opened by libraries, which bind themselves."""
        with ExitStack() as trying:
            trying.enter_context(self._bind(self.settings.otlp_grpc_port, GRPC_PORT_SETTING))
            if not self.settings.clickhouse_url:
                trying.enter_context(self._bind(self.settings.clickhouse_port, CLICKHOUSE_PORT_SETTING))
            return self._bind(self.settings.otlp_http_port, HTTP_PORT_SETTING)

    def _bind(self, port: int, setting: str) -> socket.socket:
        return bind(self.settings.listen_address, port, setting)

    def _serve_sql(self, starting: ExitStack) -> None:
        engine = connection_string(self.settings.data_dir)
        wanted = self.settings
        url = starting.enter_context(
            serving_sql(
                engine,
                DATABASE,
                wanted.listen_address,
                wanted.clickhouse_port,
                access=wanted.access,
                count=self._count_not_admitted,
                observe_s=self.metrics.query_duration.observe,
            )
        )
        self.clickhouse_port = urlsplit(url).port or wanted.clickhouse_port

    def _open(self) -> Client:
        if self.settings.clickhouse_url:
            return connect(self.settings.clickhouse_url)
        return open_store(self.settings.data_dir)

    def _start_grpc(self, starting: ExitStack, writer: Writer) -> None:
        receiver = GrpcReceiver(writer, self.metrics, self.settings.access, self._door_limits())
        starting.callback(receiver.stop)
        try:
            self.otlp_grpc_port = receiver.start(self.settings.listen_address, self.settings.otlp_grpc_port)
        except RuntimeError as error:  # Somebody took it since it was tried.
            raise PortTakenError(
                f"port {self.settings.otlp_grpc_port} is taken: set {GRPC_PORT_SETTING} to another port"
            ) from error

    @staticmethod
    def _serve(starting: ExitStack, server: HttpServer) -> None:
        starting.callback(server.stop)
        server.start()

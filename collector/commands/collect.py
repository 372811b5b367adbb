"""`tachograph collect`: the collector in the foreground."""

import gc
from pathlib import Path
from typing import Protocol

from collector.access.access import is_loopback
from collector.access.settings import AccessSettings, access_of
from collector.sampling.rules import SamplingRules
from collector.stop_signals import StopSignals
from collector.store.allocator import give_back_soon
from collector.telemetry.log_format import LogFormat


class CollectSettings(AccessSettings, Protocol):
    """What `collect` needs of the command line's settings."""

    data_dir: Path
    clickhouse_url: str
    clickhouse_cluster: str
    otlp_grpc_port: int
    otlp_http_port: int
    clickhouse_port: int
    spool_bytes_max: int
    disk_free_bytes_min: int
    store_bytes_max: int
    retention: str
    sampling: bool
    sampling_share: float
    sampling_after_s: int
    sampling_context_s: int
    sampling_keeps_marked: bool
    request_bytes_max: int
    request_spans_max: int
    requests_at_once_max: int
    log_format: LogFormat


def collect(settings: CollectSettings) -> None:
    """Receive graph executions over OTLP and store them, until Ctrl-C.

    Listens for OTLP over gRPC and HTTP; the HTTP port answers /healthz, /readyz and /metrics as well. With the
    embedded store it also answers ClickHouse's HTTP protocol, read-only.
    """
    give_back_soon()
    # The store takes a second to import: other commands do without it.
    import structlog  # noqa: PLC0415

    from collector.service import Collector, CollectorSettings  # noqa: PLC0415
    from collector.telemetry.logs import configure_logs  # noqa: PLC0415

    configure_logs(settings.log_format)
    log = structlog.get_logger(__name__)
    access = access_of(settings)
    wanted = {name: getattr(settings, name) for name in CollectorSettings._fields if name not in ("access", "sampling")}
    collector = Collector(CollectorSettings(**wanted, access=access, sampling=sampling_of(settings)))
    with StopSignals() as asked, collector:
        gc.freeze()  # What was made until now stays: no collection has to look through it again.
        if not access.certificate and not is_loopback(settings.listen_address):
            log.warning("credentials travel in clear text: set TACHOGRAPH_TLS_CERTIFICATE, or put TLS in front")
        log.info("collecting", data_dir=str(settings.data_dir), **collector.urls())
        asked.wait()
        log.info("stopping")
    log.info("stopped")


def sampling_of(settings: CollectSettings) -> SamplingRules | None:
    """The rules of sampling that the settings name; None where it is off."""
    if not settings.sampling:
        return None
    return SamplingRules(
        settings.sampling_share,
        settings.sampling_after_s,
        settings.sampling_context_s,
        settings.sampling_keeps_marked,
    )

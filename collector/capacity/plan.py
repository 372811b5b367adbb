"""From a fleet's size to what runs where and what that costs. Pure: equal fleets give equal plans."""

import math
from typing import Final, NamedTuple

from collector.capacity.figures import Figures

CELL_S: Final = 30
DAY_S: Final = 86_400
ROLLUP_DAYS: Final = 180
SECOND_DAYS: Final = 30
"""Rollups by second go before those by cell."""
HEADROOM: Final = 2.0
"""Cores are planned for twice the mean: bursts, merges that catch up, and what waited in a spool."""
REPLICAS: Final = 2
EMBEDDED_CORES_MAX: Final = 4
"""Beyond it, ingest and questions get into each other's way in one process."""
EMBEDDED_DISK_MAX: Final = 2 * 10**12
SERVER_CORES: Final = 32
SERVER_DISK: Final = 10 * 10**12
SERVER_MEMORY: Final = 128 * 10**9
JUDGING_CORES_MAX: Final = 0.05
"""Of each store: one thread, and of its time no more than that (`collector.judging.judging`)."""
OPEN_ENGINES_MAX: Final = 500
"""Engines that one collector's doors are planned for: a connection each, and 512 over HTTP."""
PROCESS_CORES_MAX: Final = 1.0
"""Of Python in one process: its threads take turns. So much the recorder of an engine has, and a collector's own work."""

RECORDERS_BREAK: Final = "recorders: they want more than a core of each engine's process, so that buffers fill and lose"


class Fleet(NamedTuple):
    """What is to be planned for."""

    engines: int
    gpus_per_engine: int = 1
    executions_per_s: float = 0.0
    """Of one engine; 0 takes the measured figure."""
    days: int = 30
    """How long executions are kept."""
    sampling_kept: float = 1.0
    """Share of cells that sampling keeps whole; 1 is without sampling."""
    odd_cells: float = 0.05
    """Share of cells that the rollup does not clear, so that their executions are read."""
    through_exporter: bool = False
    """Through the OpenTelemetry Collector's exporter, `otel_traces` keeping nothing."""
    viewers: int = 10


class Plan(NamedTuple):
    """What runs where, and what it costs."""

    layout: str
    """`embedded`, `server` or `cluster`."""
    gpus: int
    executions_per_s: float
    engine_cpu_share: float
    """Of one core, in each engine's process."""
    ingest_cores: float
    judging_cores: float
    asking_cores: float
    cores: int
    """Of one copy of the store, over all its shards, and of the collectors together, with headroom."""
    disk_bytes: float
    """Of one copy, over all its shards, when everything is as old as it gets."""
    raw_bytes_per_day: float
    network_bytes_per_s: float
    memory_bytes: float
    """Of one copy of the store, over all its shards, and of the collectors."""
    collectors: int
    shards: int
    replicas: int
    store_hosts: int
    """Of all copies together: shards times replicas."""
    cores_per_store_host: int
    """The collectors' share counted in; a replica can do all of its shard's work alone."""
    disk_bytes_per_store_host: float
    memory_bytes_per_store_host: float
    memory_bytes_per_collector: float
    """Of those apart from the store; 0 where it is embedded."""
    breaks_first: str
    """What gives way first when it grows."""


def plan_of(fleet: Fleet, known: Figures) -> Plan:
    """What a fleet wants, by these figures."""
    rate = fleet.engines * (fleet.executions_per_s or known.executions_per_s_of_an_engine.value)
    # A window without an execution is no cell.
    cells_per_s = min(fleet.engines / CELL_S, rate)
    judging = 2 * cells_per_s * _judging_ms(fleet, known) / 1e3
    asking = fleet.viewers * known.viewer_cpu_s_per_s.value
    raw_per_day = rate * DAY_S * known.bytes_per_execution.value
    disk = raw_per_day * _days_of_raw(fleet) + cells_per_s * DAY_S * _rollup_byte_days(known)
    ingest = rate * _ingest_us(fleet, known, layout="embedded") / 1e6
    embedded = HEADROOM * (ingest + judging) + asking
    layout = "embedded"
    # An embedded store is one process's, so that it has the connections of one collector.
    is_one = fleet.engines <= OPEN_ENGINES_MAX and not fleet.through_exporter
    if not is_one or embedded > EMBEDDED_CORES_MAX or disk > EMBEDDED_DISK_MAX:
        layout = "server"
        ingest = rate * _ingest_us(fleet, known, layout) / 1e6
    cores = max(math.ceil(HEADROOM * (ingest + judging) + asking), 1)
    shards = _shards(layout, cores, disk)
    if shards > 1:
        layout = "cluster"
    collectors = _collectors(fleet, known, layout, rate)
    in_engine = rate / fleet.engines * known.engine_cpu_us_per_execution.value / 1e6
    largest = "questions" if asking > HEADROOM * ingest else "ingest"
    replicas = REPLICAS if layout == "cluster" else 1
    collector_memory = known.embedded_memory_bytes.value
    return Plan(
        layout=layout,
        gpus=fleet.engines * fleet.gpus_per_engine,
        executions_per_s=rate,
        engine_cpu_share=in_engine,
        ingest_cores=ingest,
        judging_cores=judging,
        asking_cores=asking,
        cores=cores,
        disk_bytes=disk,
        raw_bytes_per_day=raw_per_day,
        network_bytes_per_s=rate * known.otlp_gzip_bytes_per_execution.value,
        memory_bytes=collector_memory * collectors + (0 if layout == "embedded" else shards * SERVER_MEMORY),
        collectors=collectors,
        shards=shards,
        replicas=replicas,
        store_hosts=shards * replicas,
        cores_per_store_host=math.ceil(cores / shards),
        disk_bytes_per_store_host=disk / shards,
        memory_bytes_per_store_host=collector_memory if layout == "embedded" else SERVER_MEMORY,
        memory_bytes_per_collector=0 if layout == "embedded" else collector_memory,
        breaks_first=RECORDERS_BREAK
        if in_engine > PROCESS_CORES_MAX
        else _breaks_first(layout, largest, judging, cores=cores, disk=disk, shards=shards),
    )


def _judging_ms(fleet: Fleet, known: Figures) -> float:
    """CPU time for a cell, once, in ms."""
    odd, healthy = known.judging_cpu_ms_per_odd_cell.value, known.judging_cpu_ms_per_healthy_cell.value
    return fleet.odd_cells * odd + (1 - fleet.odd_cells) * healthy


def _days_of_raw(fleet: Fleet) -> float:
    """Days' worth of executions on disk. With sampling a day is whole until it is over, and its rest is given back."""
    whole_days = min(fleet.days, 1.5) if fleet.sampling_kept < 1 else 0.0
    return whole_days + (fleet.days - whole_days) * fleet.sampling_kept


def _rollup_byte_days(known: Figures) -> float:
    """Bytes that rollups of one cell take, each for as long as it is kept, times days."""
    return ROLLUP_DAYS * known.rollup_bytes_per_cell.value + SECOND_DAYS * known.second_bytes_per_cell.value


def _ingest_us(fleet: Fleet, known: Figures, layout: str) -> float:
    """CPU time for an execution, of all that takes part behind the engine, in us."""
    if fleet.through_exporter:
        return known.otel_traces_cpu_us_per_execution.value
    if layout == "embedded":
        return known.collector_cpu_us_per_execution.value
    # Before a server, the collector hashes, parses once, keeps and sends: what is left of the whole.
    return max(known.collector_cpu_us_per_execution.value, known.server_cpu_us_per_execution.value)


def _collectors(fleet: Fleet, known: Figures, layout: str, rate: float) -> int:
    """Processes of `tachograph collect`: by connections, and by what is theirs of the work for an execution."""
    if layout == "embedded":
        return 1
    by_engines = math.ceil(fleet.engines / OPEN_ENGINES_MAX)
    if fleet.through_exporter:
        return by_engines
    own_us = max(known.collector_cpu_us_per_execution.value - known.server_cpu_us_per_execution.value, 0.0)
    return max(by_engines, math.ceil(HEADROOM * rate * own_us / 1e6 / PROCESS_CORES_MAX))


def _shards(layout: str, cores: int, disk: float) -> int:
    if layout == "embedded":
        return 1
    return max(math.ceil(cores / SERVER_CORES), math.ceil(disk / SERVER_DISK))


def _breaks_first(layout: str, largest: str, judging: float, *, cores: int, disk: float, shards: int) -> str:
    """The bound that is nearest, or passed.

    Args:
        largest: What most of the cores are for, `ingest` or `questions`.
    """
    if judging > JUDGING_CORES_MAX:
        return "judging: verdicts lag behind, nothing is lost"
    if layout == "embedded":
        by_disk = disk / EMBEDDED_DISK_MAX >= cores / EMBEDDED_CORES_MAX
        shared = f"cores, most of them for {largest}: ingest and questions share one process"
        return "disk: a bound drops the oldest days" if by_disk else shared
    if disk / SERVER_DISK >= cores / SERVER_CORES:
        return "disk: fewer days, or sampling"
    if shards == 1:
        return f"cores, most of them for {largest}: a cluster is next"
    slow = {"ingest": "spools fill, then senders are held back", "questions": "pages get slower, nothing is lost"}
    return f"cores for {largest}: {slow[largest]}"

"""A plan in words, for a terminal and for docs/capacity.md: `python -m collector.capacity.shown > docs/capacity.md`."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from collector.capacity.figures import figures, measured_on
from collector.capacity.plan import HEADROOM, Fleet, Plan, plan_of
from engine_hooks.commands.counting import counted

SIZES: Final = (
    ("10 GPUs", Fleet(10)),
    ("1,000 GPUs", Fleet(1000)),
    ("100,000 GPUs, 8 an engine", Fleet(12_500, gpus_per_engine=8)),
    ("the same, sampled", Fleet(12_500, gpus_per_engine=8, sampling_kept=0.2)),
    ("100,000 GPUs, 1 an engine", Fleet(100_000)),
    ("the same, sampled", Fleet(100_000, sampling_kept=0.2)),
)
"""Fleets of the page: `sampled` keeps a fifth of the cells whole."""


def lines_of(plan: Plan) -> Iterator[str]:
    """What a terminal shows."""
    width = max(len(name) for name, _ in told(plan))
    for name, value in told(plan):
        yield f"{name:{width}}  {value}"


def told(plan: Plan) -> list[tuple[str, str]]:
    """Every figure in words."""
    hosts = {
        "embedded": "one `tachograph up`, with the embedded store",
        "server": f"{plan.collectors:,} x `tachograph collect`, one ClickHouse server",
        "cluster": f"{plan.collectors:,} x `tachograph collect`, {plan.store_hosts:,} ClickHouse hosts: {plan.shards:,} shards "
        f"x {plan.replicas} replicas",
    }
    return [
        ("runs", hosts[plan.layout]),
        ("executions", f"{_rate(plan.executions_per_s)} a second"),
        ("in each engine", f"{_share(plan.engine_cpu_share)} of a core"),
        ("one store host", _one_host(plan)),
        ("all store hosts", _all_hosts(plan)),
        ("collectors", _collectors(plan)),
        ("cores of a copy", f"{plan.cores:,}{f', on {plan.shards:,} hosts' if plan.shards > 1 else ''}"),
        (
            "of them",
            f"{HEADROOM:g} x (ingest {_cores(plan.ingest_cores)} + judging {_cores(plan.judging_cores)}), for bursts, "
            f"+ questions {_cores(plan.asking_cores)}, rounded up",
        ),
        ("disk of a copy", f"{size(plan.disk_bytes)}{f', on {plan.shards:,} hosts' if plan.shards > 1 else ''}"),
        ("a day", f"{size(plan.raw_bytes_per_day)} of executions, a copy"),
        ("network", f"{size(plan.network_bytes_per_s)} a second, compressed"),
        ("breaks first", plan.breaks_first),
    ]


def _one_host(plan: Plan) -> str:
    """What to buy for each host of the store."""
    return _host(plan.cores_per_store_host, plan.disk_bytes_per_store_host, plan.memory_bytes_per_store_host)


def _all_hosts(plan: Plan) -> str:
    """What is bought for the store altogether."""
    hosts = plan.store_hosts
    if hosts == 1:
        return "the same: there is one"
    whole = _host(
        hosts * plan.cores_per_store_host,
        hosts * plan.disk_bytes_per_store_host,
        hosts * plan.memory_bytes_per_store_host,
    )
    return f"{whole}, for all {hosts:,}"


def _host(cores: int, disk_bytes: float, memory_bytes: float) -> str:
    return f"{counted(cores, 'core')}, {size(disk_bytes)} of disk, {size(memory_bytes)} of memory"


def _collectors(plan: Plan) -> str:
    """What the collectors want beside the store's hosts."""
    if plan.layout == "embedded":
        return "in the store's process"
    each = size(plan.memory_bytes_per_collector)
    if plan.collectors == 1:
        return f"{each} of memory; its cores are in the store hosts'"
    return f"{each} of memory each; their cores are in the store hosts'"


def _rate(per_s: float) -> str:
    if per_s >= 10:
        return f"{per_s:,.0f}"
    return f"{per_s:.2g}" if per_s >= 0.01 else "less than 0.01"


def _share(of_a_core: float) -> str:
    percent = 100 * of_a_core
    return f"{percent:,.2f} %" if percent >= 0.01 else "less than 0.01 %"


def _cores(count: float) -> str:
    return f"{count:,.1f}" if count >= 10 else f"{count:.2f}"


def size(count: float) -> str:
    """Bytes as people say them."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if count >= 10 or unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} PB"


def page() -> str:
    """docs/capacity.md."""
    known = figures()
    plans = [(name, dict(told(plan_of(fleet, known)))) for name, fleet in SIZES]
    names = list(plans[0][1])
    table = [f"| | {' | '.join(name for name, _ in plans)} |", f"| --- |{' --- |' * len(plans)}"]
    table += [f"| {name} | {' | '.join(plan[name] for _, plan in plans)} |" for name in names]
    measured = ["| figure | value | of | from | on |", "| --- | --- | --- | --- | --- |"]
    for name, figure in known._asdict().items():
        measured.append(
            f"| `{name}` | {figure.value:,g} {figure.unit} | {figure.meaning} | {figure.source} | {figure.date} |"
        )
    text = files("collector.capacity").joinpath("page.md").read_text("utf-8")
    filled = {"{sizes}": "\n".join(table), "{figures}": "\n".join(measured), "{machine}": measured_on()}
    for mark, value in filled.items():
        text = text.replace(mark, value)
    return text


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201

"""`tachograph import`: GPU profiles, sent down the way that live executions take."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from engine_hooks.adapters.profile_files import imported
from engine_hooks.adapters.profiles.imported import EngineInstance, ImportedTrace
from engine_hooks.adapters.profiles.shifting import EPOCH, SHIFT_TO_NOW, Shift, shift_of
from engine_hooks.commands.counting import counted
from engine_hooks.commands.partly_taken import telling_taken
from engine_hooks.commands.terminal import print_table
from engine_hooks.contract.names import GraphKind
from engine_hooks.recorder.sending import raise_for_refused, sender


class ImportSettings(Protocol):
    """What this command needs of the settings."""

    @property
    def otlp_endpoint(self) -> str:
        """OTLP over gRPC: `http://127.0.0.1:4317`."""


def import_traces(
    settings: ImportSettings,
    files: Annotated[
        list[Path],
        typer.Argument(help="Kineto traces, gzipped or not, and Nsight Systems SQLite exports.", show_default=False),
    ],
    *,
    kind: Annotated[GraphKind, typer.Option(help="What the graphs compute; a profile does not say.")] = GraphKind.MIXED,
    shift_to: Annotated[
        str | None,
        typer.Option(
            help="Move each file's times: its last execution ends `now` or at an ISO 8601 time; "
            "`base` adds a Kineto trace's baseTimeNanoseconds. Without it a trace's times stay as they are.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and show, send nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Import the graph launches of PyTorch profiler (Kineto) traces and Nsight Systems SQLite exports.

    Which of them a file is, its content says.

    All files are read before anything is sent, so a broken one leaves nothing half-imported.
    A file imported twice is stored once.
    """
    # In whole microseconds, so that an ISO 8601 time can say the same.
    shift = shift_of(shift_to, time.time_ns() // 1_000 * 1_000)
    traces = _read(files, kind, shift)
    again = _again(shift) if shift_to == SHIFT_TO_NOW else ", as before: those are stored once"
    refused = Counter[str]() if dry_run else _send(settings.otlp_endpoint, traces, again)
    if as_json:
        typer.echo(json.dumps([_summary(trace) for trace in traces], indent=2))
    else:
        print_table(_table(traces))
        typer.echo(_closing(traces, "" if dry_run else settings.otlp_endpoint))
    raise_for_refused(settings.otlp_endpoint, refused)


def _read(files: Sequence[Path], kind: GraphKind, shift: Shift) -> list[ImportedTrace]:
    with _progress(DownloadColumn()) as progress:
        return [_read_one(file, kind, shift, progress) for file in _distinct(files)]


def _distinct(files: Sequence[Path]) -> list[Path]:
    """Each file once, however it is named, in the order in which they are named first."""
    named: dict[Path, Path] = {}
    for file in files:
        named.setdefault(file.resolve(), file)
    return list(named.values())


def _read_one(file: Path, kind: GraphKind, shift: Shift, progress: Progress) -> ImportedTrace:
    size_bytes = file.stat().st_size if file.is_file() else None
    task = progress.add_task(f"reading {file.name}", total=size_bytes)
    return imported(file, kind, shift, lambda done_bytes: progress.update(task, completed=done_bytes))


def _again(now: Shift) -> str:
    """How the same is sent once more after `--shift-to now`."""
    moment = EPOCH + timedelta(microseconds=(now.end_at or 0) // 1_000)
    return (
        f" by --shift-to {moment:%Y-%m-%dT%H:%M:%S.%fZ} and all else as before: those are stored once; "
        "another now is another engine instance"
    )


def _send(endpoint: str, traces: Sequence[ImportedTrace], again: str) -> Counter[str]:
    """Sends every execution; gives the number that was refused, by the collector's words."""
    instances = [instance for trace in traces for instance in trace.instances]
    total = sum(len(instance.executions) for instance in instances)
    refused: Counter[str] = Counter()
    with _progress() as progress, sender(endpoint) as connection, telling_taken(connection, total, again):
        task = progress.add_task("sending", total=total)
        for instance in instances:
            refused += connection.send_all(
                instance.resource, instance.executions, lambda spans: progress.advance(task, spans)
            )
    return refused


def _progress(*columns: Any) -> Progress:
    """A bar on standard error; none where that is no terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _summary(trace: ImportedTrace) -> dict[str, Any]:
    """One file as `--json` prints it. Times in ns."""
    return {
        "file": str(trace.path),
        "instances": [_instance_summary(instance) for instance in trace.instances],
        "skipped": dict(trace.skipped),
        "device_operations": trace.operations,
        "device_operations_without_launch": trace.operations_without_launch,
        "device_operations_left_out": dict(trace.operations_left_out),
    }


def _instance_summary(instance: EngineInstance) -> dict[str, Any]:
    executions = instance.executions
    depths = [execution.graph_queue_depth or 0 for execution in executions]
    return {
        "service_instance_id": instance.resource.service_instance_id,
        "device": instance.device,
        "executions": len(executions),
        "graphs": dict(Counter(execution.graph_name for execution in executions)),
        "gpu_time_ns": sum(execution.graph_gpu_time_ns for execution in executions),
        "device_busy_ns": instance.device_busy_ns,
        "device_idle_ns": instance.device_span_ns - instance.device_busy_ns,
        "queue_depth_min": min(depths, default=None),
        "queue_depth_max": max(depths, default=None),
        "started_at_first": min((execution.started_at for execution in executions), default=None),
        "ended_at_last": max((execution.started_at + execution.duration_ns for execution in executions), default=None),
    }


def _table(traces: Sequence[ImportedTrace]) -> Table:
    table = Table(title_justify="left")
    table.add_column("file", overflow="fold")
    table.add_column("GPU", no_wrap=True)
    for heading in ("executions", "graphs", "GPU ms", "busy", "queue depth"):
        table.add_column(heading, justify="right", no_wrap=True)
    for trace in traces:
        for number, instance in enumerate(trace.instances):
            own = _instance_summary(instance)
            table.add_row(
                "" if number else trace.path.name,
                _place(instance),
                f"{own['executions']:,}",
                f"{len(own['graphs']):,}",
                f"{own['gpu_time_ns'] / 1e6:,.1f}",
                f"{instance.device_busy_ns / max(instance.device_span_ns, 1):.1%}",
                f"{own['queue_depth_min']} to {own['queue_depth_max']}" if own["executions"] else "",
            )
    return table


def _left_out(trace: ImportedTrace) -> list[str]:
    """One line for each reason why something of the file was left out."""
    lines = [f"{trace.path.name}: {count:,} launches left out: {reason}" for reason, count in trace.skipped.items()]
    if unknown := trace.operations_without_launch:
        lines.append(f"{trace.path.name}: {unknown:,} of {trace.operations:,} device operations have no launch record")
    for reason, count in trace.operations_left_out.items():
        lines.append(f"{trace.path.name}: {count:,} device operations left out: {reason}")
    return lines


def _place(instance: EngineInstance) -> str:
    """The device, and its process where the file tells it: two processes each have a device 0."""
    process = instance.resource.engine_attributes.get("process_id")
    return f"{instance.device} (pid {process})" if process else str(instance.device)


def _closing(traces: Sequence[ImportedTrace], endpoint: str) -> str:
    count = sum(len(instance.executions) for trace in traces for instance in trace.instances)
    executions = counted(count, "execution")
    last = f"sent {executions} to {endpoint}" if endpoint else f"{executions}; dry run, nothing was sent"
    return "\n".join([*(line for trace in traces for line in _left_out(trace)), last])

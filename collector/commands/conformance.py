"""`tachograph conformance`: does an engine keep the contract?"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from collector.stop_signals import StopSignals
from engine_hooks.commands.counting import counted
from engine_hooks.commands.finite import finite
from engine_hooks.commands.terminal import output_console

if TYPE_CHECKING:
    from collector.conformance.examiner import Report

_LOOKS_EVERY_S = 0.1


def conformance(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Files of OTLP, JSON or protobuf, also gzipped.", show_default=False),
    ] = None,
    *,
    listen: Annotated[bool, typer.Option("--listen", help="Receive OTLP on loopback instead, until Ctrl-C.")] = False,
    grpc_port: Annotated[int, typer.Option(min=0, max=65535, help="Of --listen; 0 is any free one.")] = 0,
    http_port: Annotated[int, typer.Option(min=0, max=65535, help="Of --listen; 0 is any free one.")] = 0,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, callback=finite, help="Listen for so long.", show_default="until Ctrl-C"),
    ] = None,
    executions: Annotated[
        int | None, typer.Option(min=1, help="Listen until so many came.", show_default="until Ctrl-C")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors do.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: every finding as JSON.")] = False,
) -> None:
    """Say what an engine, in any language, sends wrongly, rule by rule.

    Exit code 0 where it keeps the contract, 1 where it does not, 2 where nothing could be read or was received.
    """
    # gRPC takes half a second to import: other commands do without it.
    from collector.conformance.report import as_json as json_of  # noqa: PLC0415
    from collector.conformance.report import counts, print_report  # noqa: PLC0415

    _check_call(files, listen=listen, only_listening=(grpc_port, http_port, seconds, executions))
    report = _listened(grpc_port, http_port, seconds, executions) if listen else _read(files or [])
    if as_json:
        typer.echo(json_of(report))
    elif report.executions or report.findings:
        print_report(report, output_console())
    errors, warnings = counts(report)
    if errors or (strict and warnings):
        raise typer.Exit(1)
    if not report.executions:
        others = f" ({counted(report.other_spans, 'span')} of other names)" if report.other_spans else ""
        _nothing(f"no graph execution {'was received' if listen else 'in what was read'}{others}: nothing to judge")


def _check_call(files: list[Path] | None, *, listen: bool, only_listening: tuple[float | None, ...]) -> None:
    if bool(files) == listen:
        _nothing("name files, or give --listen" if not listen else "give either files or --listen")
    if not listen and any(only_listening):
        _nothing("--grpc-port, --http-port, --seconds and --executions go with --listen")


def _nothing(why: str) -> NoReturn:
    from collector.conformance.errors import ConformanceError  # noqa: PLC0415

    raise ConformanceError(why)


def _read(files: list[Path]) -> "Report":
    """Every file; one that goes wrong half-way is a finding of what was read before."""
    from collector.conformance.errors import ConformanceError  # noqa: PLC0415
    from collector.conformance.examiner import Examiner  # noqa: PLC0415
    from collector.conformance.files import check_readable, requests_in  # noqa: PLC0415

    for file in files:
        check_readable(file)
    examiner = Examiner(live=False)
    for file in files:
        is_begun = False
        try:
            for _, request in requests_in(file):
                examiner.take(request)
                is_begun = True
        except ConformanceError as error:
            if not is_begun or not examiner.executions:
                raise
            examiner.unreadable(str(error), "")
    return examiner.report()


def _listened(grpc_port: int, http_port: int, seconds: float | None, executions: int | None) -> "Report":
    from collector.conformance.examiner import Examiner  # noqa: PLC0415
    from collector.conformance.listening import listening  # noqa: PLC0415

    examiner = Examiner(live=True)
    enough = threading.Event()

    def look() -> None:
        if executions is not None and examiner.executions >= executions:
            enough.set()

    with StopSignals() as asked:
        with listening(examiner, grpc_port, http_port, look) as doors:
            told = Console(stderr=True)
            told.print(f"listening: OTLP gRPC {doors.grpc_url}, HTTP {doors.http_url}/v1/traces", soft_wrap=True)
            told.print(
                f"  OTEL_EXPORTER_OTLP_ENDPOINT={doors.grpc_url} OTEL_EXPORTER_OTLP_PROTOCOL=grpc YOUR_ENGINE",
                soft_wrap=True,
            )
            deadline = None if seconds is None else time.monotonic() + seconds
            for wait_s in _waits(deadline):
                if asked.wait(wait_s) or enough.is_set():
                    break
        return examiner.report()


def _waits(deadline: float | None) -> Iterator[float]:
    """How long to wait each time, until the deadline."""
    while deadline is None or time.monotonic() < deadline:
        yield _LOOKS_EVERY_S

"""`tachograph demo torch`: a small real engine on this machine's CPU, recorded as any engine is."""

import json
import logging
import os
import signal
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from types import FrameType
from typing import Annotated, Final

import typer

from engine_hooks.adapters.torch_cpu.device_queue import DeviceQueue
from engine_hooks.adapters.torch_cpu.processor_queue import ProcessorQueue
from engine_hooks.commands.demo.asked import Asked, Clock
from engine_hooks.commands.demo.delivered import raise_for_lost
from engine_hooks.commands.demo.reaching import warn_where_nothing_listens
from engine_hooks.commands.demo.settings import SendingSettings
from engine_hooks.commands.finite import finite
from engine_hooks.contract.execution import EngineResource
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.recorder.sending import endpoint_url
from engine_hooks.torch_demo.errors import DemoOptionError, TorchMissingError
from engine_hooks.torch_demo.host_delay import HostDelays, host_delay_of

FLUSH_S: Final = 5.0
"""How long the end waits for the collector to take what is still in the buffer."""
SWITCH_INTERVAL_S: Final = 0.0005
"""Of Python's threads. The host must come back from the device quickly; 5 ms, the default, is as long as a round."""


class Stopping:
    """Lets Ctrl-C and SIGTERM end the engine with its next round."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def __call__(self) -> bool:
        return self.asked

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True


def torch_engine(
    settings: SendingSettings,
    *,
    cost_model: Annotated[str, typer.Option(help=f"One of {', '.join(COST_MODELS)}.")] = "drained_share",
    host_delay: Annotated[
        list[str] | None,
        typer.Option(
            metavar="60ms@10s",
            help="Let the host stumble once, in the first speculative round from that second on; repeatable.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, callback=finite, help="How long to run, by its clock. 0: until Ctrl-C.")
    ] = 0,
    clock: Annotated[
        Clock, typer.Option(help="processor: host and device by their processor time, for a machine with other work.")
    ] = Clock.WALL,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Of weights, prompts and samples.")] = 0,
    host: Annotated[str, typer.Option(help="The engine's host name in the record.")] = "demo-torch",
    cell: Annotated[
        str,
        typer.Option(
            help="The cell's name in the record.", show_default="the run is one cell; windows of 30 s without --seconds"
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run a small real engine on the CPU: a transformer, drafts, verification, two submissions in flight.

    At the start it measures every verification budget and offers the scheduler, beside plain decode, the one
    whose gain over it is nearest to half as much again. Needs PyTorch.
    Exit code 1 where anything that was recorded reached no collector.
    """
    # What is wrong is refused now, not after the start.
    model, delays = cost_model_named(cost_model), [host_delay_of(text) for text in host_delay or ()]
    require_torch()
    resource = torch_resource(host, cost_model, clock)
    recorder = recorder_to(settings.otlp_endpoint, resource)
    typer.echo("starting: loading PyTorch and measuring every verification budget takes some seconds", err=True)
    warn_where_nothing_listens(settings.otlp_endpoint)
    from engine_hooks.commands.demo.report import as_text, opening, progress_of, summary_of  # noqa: PLC0415
    from engine_hooks.torch_demo.starting import engine_on  # noqa: PLC0415 - torch takes seconds

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    asked = Asked(resource.service_instance_id, cell or own_cell(cost_model, seconds), seconds, clock)
    stopping = Stopping()
    with queue_by(clock) as queue:
        stumbles = HostDelays(delays, queue.sleep)
        engine = engine_on(queue, model, recorder.record, seed=seed, delays=stumbles, cell=asked.cell)
        if not as_json:
            typer.echo(opening(engine, asked, settings.otlp_endpoint))
        with progress_of(engine) as show:
            engine.run(seconds, stopping, show)
    logging.getLogger("engine_hooks.recorder").setLevel(logging.CRITICAL)  # the summary says what was not sent
    recorder.stop(FLUSH_S)
    summary = summary_of(engine, recorder, asked)
    typer.echo(json.dumps(summary, indent=2) if as_json else as_text(summary))
    raise_for_lost(settings.otlp_endpoint, recorder.exported, recorder.losses)


def own_cell(cost_model: str, seconds: float) -> str:
    """A name for the run as one cell; none where it has no end, and is judged by the calendar."""
    return f"{cost_model}-{int(time.time())}" if seconds else ""


def queue_by(clock: Clock) -> DeviceQueue:
    """The device, by that clock."""
    return ProcessorQueue() if clock == Clock.PROCESSOR else DeviceQueue()


def require_torch() -> None:
    """Raises `TorchMissingError` where PyTorch is not installed."""
    if find_spec("torch") is None:
        raise TorchMissingError(f"the demo engine needs PyTorch, which {sys.executable} lacks: pip install torch")


def torch_resource(host: str, package: str, clock: Clock) -> EngineResource:
    """The resource of this run. It says by what clock the times are.

    Raises:
        DemoOptionError: the host has no name.
    """
    if not host.strip():
        raise DemoOptionError("--host is empty: name the host that the record shows, or leave the option out")
    return EngineResource(
        f"{host}-{int(time.time())}-{os.getpid()}",
        service_name="tachograph-demo",
        host_name=host,
        engine_name="tachograph-demo-torch",
        engine_version=version("torch"),
        engine_package=package,
        engine_recipe="4-lanes",
        engine_attributes={"clock": clock},
        gpu_ids=("cpu",),
    )


def recorder_to(endpoint: str, resource: EngineResource) -> Recorder:
    """A recorder that sends to this endpoint.

    Raises:
        SendError: it is no URL.
    """
    endpoint_url(endpoint)
    return Recorder(resource, grpc_endpoint=endpoint, exit_timeout_s=FLUSH_S)

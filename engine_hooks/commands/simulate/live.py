"""`tachograph simulate live`: one simulated engine in real time, recorded as any engine is."""

import logging
import os
import signal
import time
from collections.abc import Mapping
from types import FrameType
from typing import Annotated, Final

import typer

from engine_hooks.commands.counting import counted
from engine_hooks.commands.finite import finite
from engine_hooks.commands.simulate.settings import SendingSettings
from engine_hooks.commands.terminal import shortened
from engine_hooks.contract.execution import EngineResource
from engine_hooks.cost_model.registry import COST_MODELS
from engine_hooks.errors import SendError
from engine_hooks.recorder.losses import LossReason, in_words
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.recorder.sending import endpoint_url
from engine_hooks.simulator.live import STUMBLE_RATE_HZ, STUMBLES_AT_S, LiveEngine
from engine_hooks.simulator.recording import simulated_resource

VERSION = "1"
"""Of the simulated engine's event model: the published experiment's."""
FLUSH_S = 2.5
"""How long the end waits for the collector to take what is still in the buffer."""
AWAY: Final = {LossReason.BUFFER_FULL, LossReason.STOPPED}
"""What is lost for these alone met no collector, not one that refused it."""


def live(
    settings: SendingSettings,
    *,
    cost_model: Annotated[str, typer.Option(help=f"One of {', '.join(COST_MODELS)}.")] = "drained_share",
    host: Annotated[str, typer.Option(help="The engine's host name in the record.")] = "demo",
    package: Annotated[str, typer.Option(help="The engine's package in the record.")] = "",
    recipe: Annotated[str, typer.Option(help="The engine's recipe in the record.")] = "32-lanes",
    seed: Annotated[int, typer.Option(min=0, help="Of noise, stumbles and drafts.")] = 0,
    stumble: Annotated[
        list[float] | None,
        typer.Option(
            metavar="SECOND",
            min=0,
            callback=finite,
            help="The host stumbles at this second, if it plans a speculative round then; repeatable.",
            show_default=", ".join(map(str, STUMBLES_AT_S)),
        ),
    ] = None,
    stumble_rate: Annotated[
        float, typer.Option(min=0, max=10, help="Stumbles a second besides, at random. 0: none.")
    ] = STUMBLE_RATE_HZ,
    seconds: Annotated[float, typer.Option(min=0, callback=finite, help="How long to run. 0: until Ctrl-C.")] = 0,
) -> None:
    """Run one simulated engine in real time and record it, until Ctrl-C.

    Two engines with one seed meet the same noise, the same luck and the same stumbles, so that
    what differs between them is their cost model.
    Exit code 1 where not all that was recorded reached a collector.
    """
    # What is wrong is refused now, not in the background.
    endpoint_url(settings.otlp_endpoint)
    resource = live_resource(host, package or cost_model, recipe)
    recorder = Recorder(resource, grpc_endpoint=settings.otlp_endpoint, exit_timeout_s=FLUSH_S)
    engine = LiveEngine(
        cost_model,
        seed,
        recorder.record,
        stumbles_at_s=STUMBLES_AT_S if stumble is None else stumble,
        stumble_rate_hz=stumble_rate,
    )
    stop_at_signals(engine)
    engine_shown = shortened(resource.service_instance_id)
    typer.echo(f"{engine_shown}: {cost_model}, sending to {settings.otlp_endpoint}; Ctrl-C ends it")
    engine.run(seconds)
    # The line below says what was not sent.
    logging.getLogger("engine_hooks.recorder.outage").setLevel(logging.CRITICAL)
    recorder.stop(FLUSH_S)
    lost = sum(recorder.losses.values())
    typer.echo(f"{counted(recorder.exported, 'execution')} sent" + (f", {lost:,} lost" if lost else ""))
    if lost:
        raise SendError(not_sent(settings.otlp_endpoint, recorder.exported, recorder.losses))


def not_sent(endpoint: str, sent: int, losses: Mapping[LossReason, int]) -> str:
    """What is said where not all that was recorded reached a collector."""
    if sent:
        recorded = counted(sent + sum(losses.values()), "execution")
        return f"a part of the record is missing at {endpoint}: of {recorded} {in_words(losses)}; see to the collector there"
    away = {reason for reason, count in losses.items() if count} <= AWAY
    remedy = "start a collector there, or set TACHOGRAPH_OTLP_ENDPOINT" if away else "the lines above say why"
    return f"none of the executions reached {endpoint}, {in_words(losses)}: {remedy}"


def live_resource(host: str, package: str, recipe: str) -> EngineResource:
    """The resource of this run of a live engine: one simulated GPU."""
    return simulated_resource(
        f"{host}-{int(time.time())}-{os.getpid()}",
        service_name="tachograph-demo",
        host_name=host,
        engine_version=VERSION,
        engine_package=package,
        engine_recipe=recipe,
    )._replace(engine_tensor_parallel=1, gpu_ids=("simulated-0",))


def stop_at_signals(engine: LiveEngine) -> None:
    """Let Ctrl-C and SIGTERM end the engine with its next round."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        engine.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)

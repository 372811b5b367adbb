"""What the demo engine says of itself, while it runs and at the end."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from engine_hooks.commands.demo.asked import Asked
from engine_hooks.commands.demo.outcome import outcome_of
from engine_hooks.commands.terminal import shortened
from engine_hooks.recorder.losses import LossReason, in_words
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.torch_demo.engine import SpeculativeEngine

SHOWN_EVERY_S: Final = 0.5
MS_NS: Final = 1e6


def opening(engine: SpeculativeEngine, asked: Asked, endpoint: str) -> str:
    """What was measured at the start, in one line, and where executions go, in another."""
    tuning, (plain, speculative) = engine.tuning, engine.graphs
    plain_ms, speculative_ms = (tuning.gpu_times_ns[drafts] / MS_NS for drafts in (0, tuning.drafts))
    duration = f"for {asked.seconds:g} s of {asked.clock} time" if asked.seconds else "until Ctrl-C"
    return (
        f"{plain.name} takes {plain_ms:.1f} ms, {speculative.name} {speculative_ms:.1f} ms with {tuning.drafts} drafts "
        f"a lane, {tuning.acceptance[0]:.0%} of the first ones accepted: {tuning.gain:.2f} times plain decode\n"
        f"{shortened(asked.instance)}: {engine.scheduler.cost_model.name}, sending to {endpoint}, {duration}"
    )


@contextmanager
def progress_of(engine: SpeculativeEngine) -> Iterator[Callable[[], None]]:
    """Where standard error is a terminal, a line that what it yields keeps up to date."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None)
        shown_at_s = 0.0

        def show() -> None:
            nonlocal shown_at_s
            if console.is_terminal and engine.elapsed_s - shown_at_s >= SHOWN_EVERY_S:
                shown_at_s = engine.elapsed_s
                progress.update(task, description=state_of(engine))

        yield show


def state_of(engine: SpeculativeEngine) -> str:
    """`512 tokens/s, 3 % plain; decode 4.1 ms, P16 6.3 + 9.1 ms`: estimates as GPU + handoff."""
    totals = engine.totals
    estimates = ", ".join(
        f"{name} {own['gpu_ns'] / MS_NS:.1f}"
        + (f" + {own['handoff_ns'] / MS_NS:.1f}" if own["handoff_ns"] else "")
        + " ms"
        for name, own in estimates_of(engine).items()
    )
    rate = totals.tokens_emitted / (engine.elapsed_s or 1)
    return f"{rate:,.0f} tokens/s, {totals.plain_fraction:.0%} of the decoding plain; charged: {estimates}"


def estimates_of(engine: SpeculativeEngine) -> dict[str, dict[str, int]]:
    """What the scheduler charges each graph now, in ns."""
    estimates = {graph.name: engine.scheduler.cost_model.estimate(graph.name, engine.now_ns) for graph in engine.graphs}
    return {
        name: {"gpu_ns": estimate.gpu_ns, "handoff_ns": estimate.handoff_ns}
        for name, estimate in estimates.items()
        if estimate is not None
    }


def summary_of(engine: SpeculativeEngine, recorder: Recorder, asked: Asked) -> dict[str, Any]:
    """The run as `--json` prints it.

    `executions` and `calibrations`, those of the start, are together what was recorded, to be `sent` or `lost`.
    """
    totals, tuning = engine.totals, engine.tuning
    lost = [*engine.executions.losses.items(), *recorder.losses.items()]
    return {
        "service_instance_id": asked.instance,
        "cell": asked.cell,
        "clock": asked.clock,
        "cost_model": engine.scheduler.cost_model.name,
        "seconds": engine.ran_s,
        "executions": totals.executions,
        "calibrations": totals.calibrations,
        "tokens_per_second": totals.tokens_emitted / (engine.ran_s or 1),
        "plain_fraction": totals.plain_fraction,
        "host_late_by_itself": {kind: totals.late[kind] for kind in (graph.kind for graph in engine.graphs)},
        "graphs": {graph.name: graph.kind for graph in engine.graphs},
        "gain_at_start": tuning.gain,
        "acceptance_at_start": list(tuning.acceptance),
        "gpu_times_at_start_ns": list(tuning.gpu_times_ns),
        "host_delays_asked": engine.delays.asked,
        "host_delays": [
            {"began_unix_ns": met.began_unix_ns, "duration_s": met.delay.duration_s} for met in engine.delays.met
        ],
        "outcome": outcome_of(engine, asked),
        "charged_before_stumble_ns": engine.charged_before_stumble_ns,
        "charged_after_stumble_ns": engine.charged_after_stumble_ns,
        "estimates": estimates_of(engine),
        "sent": recorder.exported,
        "lost": {str(reason): count for reason, count in lost if count},
    }


def as_text(summary: Mapping[str, Any]) -> str:
    """The end of a run."""
    charged = ", ".join(
        f"{name} {(own['gpu_ns'] + own['handoff_ns']) / MS_NS:.1f} ms" for name, own in summary["estimates"].items()
    )
    reasons = set(LossReason)
    unsent = in_words({LossReason(reason): count for reason, count in summary["lost"].items() if reason in reasons})
    unmeasured = [f"{count:,} {reason}" for reason, count in summary["lost"].items() if reason not in reasons]
    lost = ", ".join(filter(None, [*unmeasured, unsent]))
    lines = [
        f"{summary['seconds']:.1f} s, {summary['tokens_per_second']:,.0f} tokens/s, "
        f"{summary['plain_fraction']:.0%} of the decoding plain; charged at the end: {charged}",
        *summary["outcome"],
        f"{summary['executions'] + summary['calibrations']:,} executions recorded, {summary['calibrations']} of them "
        f"calibrations at the start; {summary['sent']:,} sent" + (f"; lost: {lost}" if lost else ""),
    ]
    return "\n".join(lines)

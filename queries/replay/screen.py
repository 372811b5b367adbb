"""A replay for the eye: a summary in the terminal, and the same as JSON."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from engine_hooks.commands.counting import counted
from engine_hooks.commands.terminal import folding, shortened
from queries.record import sampled_away
from queries.replay.result import ClosedLoop, ExactReplay, Replay, Simulated
from queries.replay.stored import closed_loop_figures, exact_figures
from queries.replay.words import bars, caveats, first_difference, shares_different, swaps_of, worth

TIMELINE_BINS = 60


def show(console: Console, replay: Replay) -> None:
    """Print a replay."""
    recorded = replay.recorded_cost_model or "a model that the record does not name"
    console.print(
        f"[bold]Replay of cell {escape(shortened(replay.cell))}[/] of engine {escape(shortened(replay.service_instance_id))}:"
        f" [bold]{replay.cost_model}[/] in place of {escape(shortened(recorded))}",
        highlight=False,
    )
    if replay.executions_dropped:
        console.print(Text(sampled_away(replay.executions_dropped), "yellow"))
    if replay.exact:
        show_exact(console, replay, replay.exact)
    if replay.closed_loop:
        show_closed_loop(console, replay, replay.closed_loop)
    if replay.not_simulated:
        console.print(Text(f"\nNot simulated: {shortened(replay.not_simulated)}."))


def show_exact(console: Console, replay: Replay, exact: ExactReplay) -> None:
    """The decisions, one at a time."""
    ordinary, different = len(exact.ordinary), len(exact.different)
    console.print("\n[bold]Exact: each decision again, with what was known then[/]")
    share = different / ordinary if ordinary else 0.0
    console.print(
        f"{different:,} of {counted(ordinary, 'decision')} ({100 * share:.1f} %) would have been others",
        highlight=False,
    )
    if different:
        console.print(timeline(replay))
        console.print(folding(swap_table(exact)))
    console.print(Text(shortened(first_difference(replay))))
    for caveat in caveats(replay):
        console.print(f"[dim]{caveat}[/]", highlight=False)


def timeline(replay: Replay) -> Text:
    """When the decisions would have been others, over the length of the cell."""
    end = f"{(replay.ended_at - replay.began_at) / 1e9:.0f} s"
    text = Text("0 s ", "dim")
    text.append(bars(shares_different(replay, TIMELINE_BINS)), "yellow")
    text.append(f" {end}", "dim")
    return text


def swap_table(exact: ExactReplay) -> Table:
    """What would have been chosen in place of what."""
    table = Table(box=None, pad_edge=False)
    for heading in ("chosen", "instead"):
        table.add_column(heading)
    for heading in ("decisions", "s"):
        table.add_column(heading, justify="right")
    for swap in swaps_of(exact):
        graphs = (Text(shortened(name)) for name in (swap.graph_name, swap.replayed_graph_name))
        table.add_row(*graphs, f"{swap.decisions:,}", f"{swap.seconds:.2f}")
    return table


def show_closed_loop(console: Console, replay: Replay, loop: ClosedLoop) -> None:
    """What the simulation says."""
    console.print(f"\n[bold]Closed loop: a simulation fitted to this cell, {len(loop.runs)} seeds[/]", highlight=False)
    console.print(folding(closed_loop_table(replay, loop)))
    console.print(worth(loop, replay.cost_model), highlight=False)
    console.print(Text(f"Check: {shortened('; '.join(checks(replay, loop)))}.", "dim"))
    for note in loop.notes:
        console.print(Text(f"Note: {shortened(note)}.", "dim"))


def closed_loop_table(replay: Replay, loop: ClosedLoop) -> Table:
    """Recorded against simulated."""
    low, high = loop.interval
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for heading in ("tokens/s", "95 %", "plain fraction"):
        table.add_column(heading, justify="right")
    recorded = f"{loop.recorded_tokens_per_s:,.1f}", "", f"{loop.recorded_plain_fraction:.3f}"
    simulated = f"{loop.tokens_per_s:,.1f}", f"{low:,.0f} to {high:,.0f}", f"{loop.plain_fraction:.3f}"
    table.add_row("recorded", *recorded)
    table.add_row(f"{replay.cost_model}, simulated", *simulated)
    return table


def checks(replay: Replay, loop: ClosedLoop) -> Iterator[str]:
    """How well the simulation does on what is known."""
    yield f"the recorded choices, simulated, come to {loop.calibration_percent:+.2f} % of the recorded tokens/s"
    if loop.recorded_model_percent is not None:
        yield f"{replay.recorded_cost_model}, simulated, to {loop.recorded_model_percent:+.2f} %"


def as_json(replay: Replay) -> dict[str, Any]:
    """Everything, as JSON takes it."""
    return {
        "replay_id": replay.replay_id,
        "service_instance_id": replay.service_instance_id,
        "cell": replay.cell,
        "cost_model": replay.cost_model,
        "recorded_cost_model": replay.recorded_cost_model,
        "executions_dropped": replay.executions_dropped,
        "sampled_away": sampled_away(replay.executions_dropped) or None,
        "parameters": dict(replay.parameters),
        "began_at_unix_ns": replay.began_at,
        "ended_at_unix_ns": replay.ended_at,
        "exact": exact_json(replay, replay.exact) if replay.exact else None,
        "closed_loop": closed_loop_json(replay, replay.closed_loop) if replay.closed_loop else None,
        "not_simulated": replay.not_simulated or None,
    }


def exact_json(replay: Replay, exact: ExactReplay) -> dict[str, Any]:
    """The exact form, with every decision."""
    return {
        **exact_figures(exact),
        "from_startup": exact.history.from_startup,
        "first_difference": first_difference(replay),
        "swaps": [swap._asdict() for swap in swaps_of(exact)],
        "caveats": caveats(replay),
        "decision_list": [one._asdict() | {"differs": one.differs, "margin": one.margin} for one in exact.decisions],
    }


def closed_loop_json(replay: Replay, loop: ClosedLoop) -> dict[str, Any]:
    """The closed loop, with every run."""
    return {
        "is_simulation": True,
        **closed_loop_figures(loop),
        "worth": worth(loop, replay.cost_model),
        "runs": rows(loop.runs),
        "recorded_choices": rows(loop.recorded_choices),
        "recorded_model": rows(loop.recorded_model),
        "notes": list(loop.notes),
    }


def rows(runs: tuple[Simulated, ...]) -> list[dict[str, float]]:
    """Runs as JSON takes them."""
    return [one._asdict() for one in runs]

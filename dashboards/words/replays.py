"""A replay in words and as a table: pure functions, so that tests need no browser."""

from dashboards.words.markdown import short
from dashboards.words.texts import escaped, percent
from engine_hooks.commands.counting import counted
from queries.record import sampled_away
from queries.replay.result import ExactReplay, Replay
from queries.replay.words import swaps_of


def replay_sentence(replay: Replay, exact: ExactReplay) -> str:
    """How many decisions would have been others, and for how long."""
    first = f"{dropped} " if (dropped := sampled_away(replay.executions_dropped)) else ""
    model, ordinary, different = escaped(replay.cost_model), len(exact.ordinary), len(exact.different)
    recorded = escaped(replay.recorded_cost_model) if replay.recorded_cost_model else "the model that was in charge"
    if not different:
        return f"{first}**{model} would have made the same {counted(ordinary, 'decision')}** as {recorded}."
    seconds = sum(swap.seconds for swap in swaps_of(exact))
    return (
        f"{first}**{model} would have made {different:,} of {counted(ordinary, 'decision')}"
        f" ({percent(different / ordinary)}) otherwise** than {recorded}, {seconds:.1f} s of the cell."
    )


def swap_table(exact: ExactReplay) -> str:
    """What would have been chosen in place of what, as Markdown."""
    head = "| Chosen | Instead | Decisions | Time, s |\n| :-- | :-- | --: | --: |"
    rows = [
        f"| {short(swap.graph_name)} | {short(swap.replayed_graph_name)} | {swap.decisions:,} | {swap.seconds:.2f} |"
        for swap in swaps_of(exact)
    ]
    return "\n".join([head, *rows])

"""Colours, once: told apart by every kind of colour vision, on light and on dark ground, and never the only sign."""

from collections import defaultdict

import pandas as pd

from engine_hooks.contract.names import GraphKind

PLAIN_FRACTION_DOMAIN = [0.0, 0.3, 1.0]
PLAIN_FRACTION_RANGE = ["#2f7fc1", "#c9c3bd", "#d9480f"]
"""Blue for speculative, orange for plain decode, turning at the threshold of `stuck`."""
NO_CHOICE = "#5a5b66"
"""A cell without a choice: no speculative graph, or no decoding. Told apart from the pale grey of the threshold."""
INK = "#8a8f98"
"""Lines and marks that must be seen on both grounds."""
FLAG = "#dc3560"
"""Flags and estimates; as text too it must be read on both grounds."""
BEFORE, AFTER = "#8a8f98", "#2f7fc1"
"""Two arms, or what was recorded and what would have been; the second is drawn filled too."""
WORSE = "#d9480f"
LEGEND_COLUMNS = 3
"""As many as a telephone has room for: a legend wider than the plot would make that narrower."""

SHADES: dict[str, list[str]] = {
    GraphKind.PLAIN_DECODE: ["#d9480f", "#f08c4a", "#a63603"],
    GraphKind.SPECULATIVE: ["#2f7fc1", "#6bb1e3", "#7a6bd0", "#1f4e96", "#36b3b0", "#a9a0ec"],
    GraphKind.PREFILL: ["#2a9d6f", "#7cc7a5", "#17694a"],
    GraphKind.MIXED: ["#c2599d", "#e09cc6", "#8d3a70"],
    GraphKind.DRAFT: ["#d4a514", "#ecd06f", "#9a7608"],
    GraphKind.STATE: ["#8d8d95", "#bcbcc2", "#5f5f66"],
}
OTHER_SHADES = ["#8d8d95"]
KIND_ORDER = [str(kind) for kind in GraphKind]


def graph_colours(executions: pd.DataFrame) -> dict[str, str]:
    """A colour for each graph, by its kind, in the order of kinds and names; the same graphs give the same colours.

    A kind with more graphs than shades uses them again: the lanes' labels tell them apart.
    """
    graphs = executions[["graph_kind", "graph_name"]].drop_duplicates()
    used: dict[str, int] = defaultdict(int)
    colours: dict[str, str] = {}
    for kind, name in sorted(graphs.itertuples(index=False), key=by_kind):
        shades = SHADES.get(kind, OTHER_SHADES)
        colours.setdefault(name, shades[used[kind] % len(shades)])
        used[kind] += 1
    return colours


def by_kind(graph: tuple[str, str]) -> tuple[int, str]:
    """Order of a (kind, name) pair: plain decode first, then as the contract lists the kinds."""
    kind, name = graph
    return (KIND_ORDER.index(kind) if kind in KIND_ORDER else len(KIND_ORDER), name)

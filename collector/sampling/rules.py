"""What sampling may drop, and when."""

from typing import Final, NamedTuple

SETTLED_S_MIN: Final = 600
SETTLED_S_MAX: Final = 7 * 86_400
"""A look goes through all cells that arrived within this and two days."""
CONTEXT_S_MIN: Final = 600
"""As far as queries look for what a graph costs: nearer, a verdict could change."""
CONTEXT_S_MAX: Final = SETTLED_S_MAX


class SamplingRules(NamedTuple):
    """The rules of one store."""

    share: float = 0.01
    """Of healthy cells, so many are kept whole, chosen by a hash of instance and cell: baselines are made of them."""
    settled_s: int = 3600
    """How long after its final verdict a cell is examined, in s: what arrives later is not waited for."""
    context_s: int = 600
    """How much before and after a cell that is kept on its own account its engine's cells are kept too, in s."""
    keeps_marked: bool = True
    """Whether cells that a benchmark marked are kept whole whatever they are: comparisons are made of them."""

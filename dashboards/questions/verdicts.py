"""Verdicts on cells as live pages ask for them: out of rollups and of what was judged last.

A store that nobody judges for (no collector of ours runs, or none has looked yet) is asked to judge on the spot, which takes longer.
"""

from dashboards.reading.answers import Answer, Ask, answer


def cells_now(ask: Ask = answer, /, **parameters: str | int) -> Answer:
    """Rows of `live_cells`, or else of `cells`; `ask` is `slow_answer` where they hardly change."""
    told = ask("live_cells", **parameters)
    return told if is_judged(told) else ask("cells", **parameters)


def stuck_now(ask: Ask = answer, /, **parameters: str | int) -> Answer:
    """Rows of `live_stuck`, or else of `stuck_plain`; `ask` as for `cells_now`."""
    told = ask("live_stuck", **parameters)
    return told if is_judged(told) else ask("stuck_plain", **parameters)


def inflation_now(cells: Answer, **parameters: str | int) -> Answer:
    """Rows of `live_inflation`, or else of `estimate_inflation`; `cells` are rows of `cells_now` on the same cells."""
    has_judgements = "judged_at" in cells.rows and is_judged(cells)
    return answer("live_inflation" if has_judgements else "estimate_inflation", **parameters)


def is_judged(told: Answer) -> bool:
    """Whether an answer of a live query rests on judgements: nothing to judge does, and so does no answer."""
    return told.rows.empty or bool(told.rows.judged_at.notna().any())

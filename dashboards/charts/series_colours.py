"""Colours and shapes for hosts and packages: by weight, so that the busiest keep theirs."""

from typing import Final

import altair as alt
import pandas as pd

SHADES: Final = ["#2f7fc1", "#d9480f", "#2a9d6f", "#c2599d", "#d4a514", "#7a6bd0"]
SHAPES: Final = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
OTHERS: Final = "others"
OTHERS_COLOUR: Final = "#8d8d95"
OTHERS_SHAPE: Final = "triangle-left"


def named_series(rows: pd.DataFrame) -> list[str]:
    """Which series get a colour and a shape of their own: those with the most executions, in alphabetical order."""
    weight = rows.groupby("series").executions.sum().sort_values(ascending=False)
    return sorted(str(name) for name in weight.index[: len(SHADES)])


def coloured(series: "pd.Series[str]", named: list[str]) -> "pd.Series[str]":
    """Each row's place in the legend."""
    return series.where(series.isin(named), OTHERS)


def domain(shown: "pd.Series[str]", named: list[str]) -> list[str]:
    """What the legend lists."""
    return [*named, OTHERS] if (shown == OTHERS).any() else named


def colour_scale(names: list[str]) -> alt.Scale:
    """A colour each."""
    return alt.Scale(domain=names, range=[*SHADES[: len(names) - (OTHERS in names)], OTHERS_COLOUR][: len(names)])


def shape_scale(names: list[str]) -> alt.Scale:
    """A shape each, so that colour is never the only sign."""
    return alt.Scale(domain=names, range=[*SHAPES[: len(names) - (OTHERS in names)], OTHERS_SHAPE][: len(names)])

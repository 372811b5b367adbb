"""Charts on a page: each made ready once for all viewers, and shown again for next to nothing."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from dashboards.charts.finished import Chart, Finished, finished

CHARTS_MAX = 64
"""Charts kept; the one that was kept longest goes first."""


def show_chart(
    key: str, rests_on: tuple[object, ...], build: Callable[[], Chart | Finished], *, alt: str, **choosing: Any
) -> Any:
    """Draw a chart, or show the one that was drawn of the same.

    Args:
        key: The chart's name on its page.
        rests_on: Everything that the chart depends on, so that equal values mean an equal chart: of answers when they
            were had, and what was asked.
        build: Makes the chart, or one that is finished already.
        alt: What a screen reader says of it.
        choosing: `on_select` and `selection_mode`, of a chart that can be clicked.
    """
    return st.vega_lite_chart(spec=kept((key, *rests_on), build), key=key, width="stretch", alt=alt, **choosing)


@st.cache_resource(max_entries=CHARTS_MAX, show_spinner=False)
def kept(which: tuple[object, ...], _build: Callable[[], Chart | Finished]) -> Finished:  # noqa: ARG001 -- the cache's key
    """The finished chart."""
    built = _build()
    return built if isinstance(built, dict) else finished(built)

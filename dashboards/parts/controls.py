"""Controls that several pages share, each bound to the URL."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboards.parts.address import heed_choice, heeded

CONTROL_PX = 168
"""Two of them stand side by side on a telephone."""


def control_bar() -> Any:
    """Where a page's controls stand side by side, as many as there is room for."""
    return st.container(horizontal=True, vertical_alignment="bottom")


def choose_any(label: str, key: str, options: Sequence[str]) -> str:
    """One of the options, or '' for any of them; what the URL asks for is one of them."""
    offered = with_asked(key, options)
    chosen = st.selectbox(
        label, offered, index=None, placeholder=f"any {key}", key=key, bind="query-params", width=CONTROL_PX
    )
    return chosen or ""


def choose_one(label: str, key: str, options: Sequence[str], default: str, width: int = CONTROL_PX) -> str:
    """One of the options; what the URL asks for is one of them."""
    offered = with_asked(key, [*options, default])
    chosen = st.selectbox(label, offered, index=offered.index(default), key=key, bind="query-params", width=width)
    return chosen or default


def choose_of(label: str, key: str, options: Sequence[str], width: int = CONTROL_PX) -> str:
    """One of all options that there can be, the first where nothing is asked; the URL can ask for no other."""
    heed_choice(key, options)
    return st.selectbox(label, options, key=key, bind="query-params", width=width, on_change=heeded, args=(key,))


def with_asked(key: str, options: Sequence[str]) -> list[str]:
    """The options in order, with the one that the URL names, if any."""
    return sorted({*options, st.query_params.get(key, "")} - {""})

"""Controls that several pages share, each bound to the URL."""

from collections.abc import Sequence

import streamlit as st


def choose_any(label: str, key: str, options: Sequence[str]) -> str:
    """One of the options, or '' for any of them; what the URL asks for is one of them."""
    offered = with_asked(key, options)
    chosen = st.selectbox(label, offered, index=None, placeholder=f"any {key}", key=key, bind="query-params")
    return chosen or ""


def choose_one(label: str, key: str, options: Sequence[str], default: str) -> str:
    """One of the options; what the URL asks for is one of them."""
    offered = with_asked(key, [*options, default])
    chosen = st.selectbox(label, offered, index=offered.index(default), key=key, bind="query-params")
    return chosen or default


def with_asked(key: str, options: Sequence[str]) -> list[str]:
    """The options in order, with the one that the URL names, if any."""
    return sorted({*options, st.query_params.get(key, "")} - {""})

"""What a page writes into its address: all of it in one step, so that "back" undoes it in one."""

from collections.abc import Mapping

import streamlit as st

from dashboards.words.texts import escaped


def write_address(values: Mapping[str, str]) -> None:
    """Put these query parameters into the address, and take those out that are ''; one step of the browser's history.

    None of them may be bound to a widget: Streamlit writes each of those by itself, a step each.
    """
    # One message takes out and puts in; what is empty is not written. Taking it out for good then changes no address.
    st.query_params.update({name: value or [] for name, value in values.items()})
    for name, value in values.items():
        if not value:
            del st.query_params[name]


def not_known(name: str, asked: str, known: str) -> str:
    """That the address asks for what there is not.

    Args:
        name: The query parameter.
        asked: Its value.
        known: What it could be, and what is shown instead.
    """
    return f"The address says {name}={escaped(asked)}, {known}."

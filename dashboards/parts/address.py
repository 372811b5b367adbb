"""What the address of a page says: written in one step, so that "back" undoes it in one; what it asks in vain is told."""

from collections.abc import Callable, Collection, Mapping

import streamlit as st

from dashboards.reading.console import PARAMETER_PREFIX
from dashboards.words.texts import escaped

PAGE, IN_VAIN = "page_shown", "asked_in_vain"
SHOWN_MAX = 60
"""Letters shown of what was asked."""
NAMED_MAX = 10
"""Options named."""
TIME = frozenset({"range", "from", "to"})
CELL = frozenset({"engine", "cell"})
KNOWN = {
    "": TIME | {"host", "package", "recipe", "arm", "concurrency", "sort", "page"},
    "cell": CELL | {"execution"},
    "graphs": TIME | {"measure", "host", "package", "graph"},
    "compare": TIME | {"before", "after", "metric", "by"},
    "what_if": CELL | {"model", "simulate"},
    "alerts": TIME | {"alert", "host"},
    "sql": frozenset({"with", "query", "sql", "show", "x", "y", "by", "mark"}),
    "health": frozenset(),
}
"""The query parameters that each page has, by where it is served."""


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
    shown = asked if len(asked) <= SHOWN_MAX else f"{asked[:SHOWN_MAX]}…"
    return f"The address says {name}={escaped(shown)}, {known}."


def begin_page(page: str) -> None:
    """Another page than before has not been asked anything in vain yet."""
    if st.session_state.get(PAGE) != page:
        st.session_state[PAGE] = page
        st.session_state.pop(IN_VAIN, None)


def heed_names(page: str) -> None:
    """Say which query parameters the address has that a page does not know: they change nothing.

    Args:
        page: Where it is served, as `KNOWN` has it.
    """
    unknown = [name for name in st.query_params if name not in KNOWN[page] and not is_of_question(page, name)]
    if unknown:
        named = ", ".join(escaped(name[:SHOWN_MAX]) for name in unknown[:NAMED_MAX])
        st.warning(f"The address has {named}, which this page does not know: passed over.", icon=":material/link_off:")


def is_of_question(page: str, name: str) -> bool:
    """Whether this is a parameter of a named query, which has its own."""
    return page == "sql" and name.startswith(PARAMETER_PREFIX)


def heed(name: str, is_known: Callable[[str], bool], known: str) -> None:
    """Say where the address asks in vain for a value of a control, until one is chosen.

    To be called before the control, whose `on_change` is `heeded`: Streamlit takes such a value out of the address.

    Args:
        name: The query parameter, which is the control's key.
        is_known: Whether the control has a value.
        known: What it could be.
    """
    in_vain: dict[str, str] = st.session_state.setdefault(IN_VAIN, {})
    if asked := list(filter(None, st.query_params.get_all(name))):
        unknown = [one for one in asked if not is_known(one)]
        in_vain.pop(name, None)
        if unknown:
            in_vain[name] = ", ".join(unknown)
    if name in in_vain:
        st.warning(not_known(name, in_vain[name], known), icon=":material/link_off:")


def heed_choice(name: str, options: Collection[str]) -> None:
    """`heed`, of one of these options; of many, not all are named."""
    which = (
        f"which is none of {', '.join(map(escaped, options))}" if len(options) <= NAMED_MAX else "which there is not"
    )
    heed(name, lambda asked: asked in options, which)


def heed_number(name: str, least: int) -> None:
    """`heed`, of a whole number."""
    heed(name, lambda asked: is_number(asked, least), f"which is no whole number of {least} or more")


def is_number(text: str, least: int) -> bool:
    """Whether this is a whole number of at least so much."""
    try:
        return int(text) >= least
    except ValueError:
        return False


def heeded(name: str) -> None:
    """What was asked in vain is over: something was chosen."""
    st.session_state.get(IN_VAIN, {}).pop(name, None)

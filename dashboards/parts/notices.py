"""What a page says about the state of its data: fresh, empty, old, or out of reach."""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pandas as pd
import streamlit as st

from dashboards.words.markdown import since
from dashboards.words.texts import age, clock, with_code


class Known(Protocol):
    """An answer or an outcome: when it was had, and what is wrong now."""

    @property
    def at(self) -> datetime | None: ...

    @property
    def problem(self) -> str: ...


def viewer_zone() -> tzinfo:
    """The viewer's time zone, as the browser names it; UTC where it names none, or one that this host does not know."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):  # A part of a name, such as `Europe`, is a folder.
        return UTC


def zone_name() -> str:
    """The zone that times are shown in, in words."""
    return str(viewer_zone())


def say_problem(answers: Iterable[Known]) -> None:
    """Where something is wrong: what, and how old the data is that stands in."""
    troubled = [answer for answer in answers if answer.problem]
    if not troubled:
        return
    problem = with_code(troubled[0].problem)
    times = [answer.at for answer in troubled if answer.at is not None]
    if len(times) < len(troubled):
        st.error(f"{problem}. Nothing to show yet; this page tries again by itself.", icon=":material/cloud_off:")
        return
    oldest = min(times)
    now = datetime.now(UTC)
    st.warning(
        f"{problem}. Shown is the last good data, of {clock(oldest, viewer_zone(), now)}, {age(now - oldest)} old;"
        " this page tries again by itself.",
        icon=":material/cloud_off:",
    )


def say_freshness(answer: Known, newest: datetime | None, live: bool = True) -> None:
    """One quiet line: when the data was read, and how old the newest execution is."""
    if answer.at is None:
        return
    now = datetime.now(UTC)
    read = f"Read at {since(pd.Timestamp(answer.at), viewer_zone(), now)} ({zone_name()})"
    last = "" if newest is None else f" · newest execution {ago(now, newest)}"
    goes_on = " · live" if live and not answer.problem else ""
    st.caption(f"{read}{last}{goes_on}", unsafe_allow_html=True)


def ago(now: datetime, then: datetime) -> str:
    """How long ago; clocks of other hosts may be ahead."""
    return f"{age(now - then)} ago" if then <= now else f"{age(then - now)} ahead of this host's clock"


def ago_text(then: datetime | None) -> str:
    """How long ago something was, or that it never was."""
    return "never" if then is None else ago(datetime.now(UTC), then)

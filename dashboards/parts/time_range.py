"""The time that a page is about: up to now, or held, so that a link shows tomorrow what it shows now.

A held time stands in the URL as two instants in UTC, `from` and `to`; the page shows it in the viewer's zone.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

import streamlit as st

from dashboards.parts.address import not_known, write_address
from dashboards.parts.notices import viewer_zone, zone_name
from dashboards.questions.ranges import ALL_TIME, HELD, RANGES, TimeRange, held_range
from dashboards.words.texts import escaped, span_words

KEY, FROM, TO = "range", "from", "to"
TYPED = {FROM: "from_typed", TO: "to_typed"}
BEFORE_HOLDING = "range_before_holding"
UNREADABLE = "time_unreadable"
YEARS = range(1971, 2200)
"""Whose instants ClickHouse can compare with those stored, and with some time before."""
STORABLE = f"of {YEARS[0]} to {YEARS[-1]},"
SHOWN = "%Y-%m-%d %H:%M:%S"
Width = int | Literal["stretch"]


def choose_range(default: str, names: Sequence[str] = tuple(RANGES), width: Width = "stretch") -> TimeRange:
    """The time range, as the address has it; of a held one also its two instants.

    Not bound to the address by Streamlit, which would write the range in one step and the instants in another: going
    back would then come upon an address that is neither.

    Args:
        default: The range of a URL that says nothing.
        names: The ranges up to now that are offered.
        width: Of each field, in px, or `stretch`.
    """
    if st.session_state.get(BEFORE_HOLDING) not in names:
        st.session_state[BEFORE_HOLDING] = default
    st.session_state[KEY] = range_asked(default, names)
    chosen = st.selectbox(
        "Time range",
        [*names, HELD],
        key=KEY,
        width=width,
        on_change=follow_choice,
        args=(default,),
        help="Up to now; or fixed, as it stands in the address, so that a link shows the same whenever it is opened.",
    )
    if chosen == HELD:
        return held_in_url(RANGES[default], width)
    say_unknown_range(chosen, names)
    st.session_state[BEFORE_HOLDING] = chosen
    return RANGES[chosen]


def range_asked(default: str, names: Sequence[str]) -> str:
    """The range that the address asks for; instants alone ask for a held one."""
    asked = st.query_params.get(KEY, "")
    if asked in (*names, HELD):
        return asked
    return default if asked or not (st.query_params.get(FROM) or st.query_params.get(TO)) else HELD


def say_unknown_range(shown: str, names: Sequence[str]) -> None:
    """Where the address asks for a range that is not offered."""
    asked = st.query_params.get(KEY, "")
    if asked not in ("", *names):
        known = f"which is none of {', '.join([*names, HELD])}; shown is {shown}"
        st.warning(not_known(KEY, asked, known), icon=":material/schedule:")


def hold_button(time_range: TimeRange, default: str) -> None:
    """Holds the time that is shown, or lets it go on."""
    if time_range.is_held:
        st.button("Up to now again", on_click=let_go, args=(default,), icon=":material/update:")
    else:
        st.button(
            "Hold this time",
            on_click=hold,
            args=(time_range,),
            icon=":material/push_pin:",
            help="The address then names this time: whoever opens the link later sees the same.",
        )


def show_all_time() -> None:
    """Choose all time, as if the viewer had."""
    choose(ALL_TIME)


def hold(time_range: TimeRange) -> None:
    """Write the time that is shown into the URL."""
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    since = None if time_range.length_s is None else until - timedelta(seconds=time_range.length_s)
    write_address({KEY: HELD, FROM: in_url(since) if since else "", TO: in_url(until)})


def let_go(default: str) -> None:
    """Show the time up to now, as before it was held."""
    before = st.session_state.get(BEFORE_HOLDING, default)
    choose("" if before == default else before)


def follow_choice(default: str) -> None:
    """What the address has to say once the viewer chose another range."""
    chosen = st.session_state[KEY]
    if chosen == HELD:
        hold(RANGES[st.session_state.get(BEFORE_HOLDING, default)])
    else:
        choose("" if chosen == default else chosen)


def choose(name: str) -> None:
    """Write a range up to now into the URL; '' is the page's own."""
    st.session_state.pop(UNREADABLE, None)
    write_address({KEY: name, FROM: "", TO: ""})


def held_in_url(default: TimeRange, width: Width) -> TimeRange:
    """The held time, which the viewer may change; where the URL's cannot be read, the default one, and why."""
    since, until = read_instant(FROM), read_instant(TO)
    type_instant("From", FROM, since, width)
    type_instant("To", TO, until, width)
    in_vain = problem_of(since, until)
    problem = st.session_state.get(UNREADABLE) or in_vain
    if problem:
        shown = f" Shown is {default.name}." if in_vain else ""
        st.warning(problem + shown, icon=":material/schedule:")
    if in_vain:
        return default
    return held_range(since, until or datetime.now(UTC), in_words(since, until))


def problem_of(since: datetime | None, until: datetime | None) -> str:
    """What is wrong with the held time; '' where nothing is."""
    unread = [
        not_known(name, st.query_params[name], f"which is no instant {STORABLE} such as 2026-11-01T22:00:00Z")
        for name, instant in ((FROM, since), (TO, until))
        if instant is None and st.query_params.get(name)
    ]
    if unread:
        return " ".join(unread)
    if since is not None and until is not None and since >= until:
        return "The time ends before it begins."
    if since is not None and until is None and since >= datetime.now(UTC):
        return "The time begins later than now."
    return "" if since or until else "The address holds no time: it needs from and to."


def type_instant(label: str, name: str, instant: datetime | None, width: Width) -> None:
    """One instant, as text in the viewer's zone."""
    if UNREADABLE not in st.session_state:
        shown = "" if instant is None else f"{instant.astimezone(viewer_zone()):{SHOWN}}"
        st.session_state[TYPED[name]] = shown
    st.text_input(
        label,
        key=TYPED[name],
        placeholder="2026-11-01 22:00:00",
        on_change=follow_typing,
        args=(name,),
        width=width,
        help=f"In {zone_name()}" + ("" if instant is None else f"; {instant.astimezone(UTC):{SHOWN}} UTC"),
    )


def follow_typing(name: str) -> None:
    """Write what was typed into the URL, if it is an instant."""
    typed = st.session_state[TYPED[name]].strip()
    try:
        instant = instant_of(typed, viewer_zone())
    except ValueError:
        st.session_state[UNREADABLE] = f"{escaped(typed)} is no time such as 2026-11-01 22:00:00; shown is what was."
        return
    st.session_state.pop(UNREADABLE, None)
    st.query_params[name] = in_url(instant)


def read_instant(name: str) -> datetime | None:
    """An instant of the URL, UTC where it names no zone; None where it is none."""
    try:
        return instant_of(st.query_params.get(name, ""), UTC)
    except ValueError:
        return None


def instant_of(text: str, zone: tzinfo) -> datetime:
    """An instant in UTC; of the zone given where it names none.

    Raises:
        ValueError: it is none, or none that can be stored.
    """
    instant = datetime.fromisoformat(text)
    if instant.year not in YEARS:
        raise ValueError(text)
    return (instant if instant.tzinfo else instant.replace(tzinfo=zone)).astimezone(UTC)


def in_url(instant: datetime) -> str:
    """An instant as the URL has it."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def in_words(since: datetime | None, until: datetime | None) -> str:
    """A held time in a sentence, in the viewer's zone."""
    return span_words(since, until, viewer_zone(), datetime.now(UTC))

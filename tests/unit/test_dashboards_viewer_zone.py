"""The time zone that a viewer's browser names: no page claims one that its times are not in."""

from datetime import UTC, datetime, timedelta, timezone

import pandas as pd
import pytest
import streamlit as st

from dashboards.parts.notices import viewer_zone, zone_name
from dashboards.words.alerts import in_zone
from dashboards.words.texts import clock


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        (None, "UTC"),
        ("Asia/Kolkata", "Asia/Kolkata"),
        # A host without time zone data, or whose data lacks the old names that browsers give, knows fewer than they do.
        ("Mars/Olympus", "UTC"),
        ("Europe", "UTC"),
        ("z" * 300, "UTC"),
        ("../UTC", "UTC"),
    ],
)
def test_times_are_said_to_be_in_the_zone_that_they_are_shown_in(
    monkeypatch: pytest.MonkeyPatch, named: str | None, shown: str
) -> None:
    monkeypatch.setattr(type(st.context), "timezone", property(lambda _: named))
    assert zone_name() == shown
    hours = {"UTC": 0.0, "Asia/Kolkata": 5.5}[shown]
    assert datetime(2026, 11, 1, tzinfo=UTC).astimezone(viewer_zone()).utcoffset() == timedelta(hours=hours)


NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("instant", "hours", "shown"),
    [
        ("2262-04-11T23:47:16.854775807Z", 5, "2262-04-12 04:47:16"),
        ("9999-12-31T23:59:59Z", -5, "9999-12-31 18:59:59"),
        ("9999-12-31T23:59:59Z", 5, "9999-12-31 23:59:59 UTC"),
        ("0001-01-01T00:00:00Z", -5, "0001-01-01 00:00:00 UTC"),
    ],
)
def test_an_instant_at_an_end_of_the_calendar_is_told_in_every_zone(instant: str, hours: int, shown: str) -> None:
    """The last second that a span can tell, and the end that people give a silence for ever."""
    moment, zone = pd.Timestamp(instant), timezone(timedelta(hours=hours))
    assert clock(moment, zone, NOW) == clock(moment.to_pydatetime(warn=False), zone, NOW) == shown
    written = f"{instant[:19].replace('T', ' ')} UTC"
    assert in_zone(f"Renewed until {written}.", zone) == f"Renewed until {shown}."

"""The time that a page is about: up to now, or held in the URL."""

from datetime import UTC, datetime, timedelta

import pytest
from streamlit.testing.v1 import AppTest

from dashboards.links import ALERTS_PAGE, COMPARE_PAGE, FLEET_PAGE, GRAPHS_PAGE
from dashboards.questions.measures import estimate_step_s
from dashboards.questions.ranges import RANGES, bounds, held_range, time_parameters
from tests.fixtures.pages import checked, page_opened, pressed, said

STUCK_THEN = {"from": "2026-10-31T00:00:00Z", "to": "2026-11-03T00:00:00Z"}
"""The labelled cells lie within."""
NEVER = {"from": "2026-10-01T00:00:00Z", "to": "2026-10-02T00:00:00Z"}


def instants(app: AppTest) -> dict[str, datetime]:
    """The held time of the URL."""
    return {name: datetime.fromisoformat(app.query_params[name]) for name in ("from", "to")}


def test_a_link_shows_its_own_time(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_opened(FLEET_PAGE, labelled_url, monkeypatch, range="fixed", **STUCK_THEN)
    assert "5 engines from 2026-10-31 00:00:00 to 2026-11-03 00:00:00, 2 stuck" in said(app)
    assert app.text_input(key="from_typed").value == "2026-10-31 00:00:00"
    assert "live" not in app.caption[-1].value


def test_from_and_to_are_enough(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_opened(FLEET_PAGE, labelled_url, monkeypatch, **NEVER)
    assert app.selectbox(key="range").value == "fixed"
    assert "No graph executions from 2026-10-01 00:00:00 to 2026-10-02 00:00:00" in said(app)


def test_holding_writes_what_is_shown_into_the_url(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = pressed(page_opened(FLEET_PAGE, labelled_url, monkeypatch, range="2 h"), "Hold this time")
    held = instants(app)
    assert held["to"] - held["from"] == timedelta(hours=2)
    assert abs(held["to"] - datetime.now(UTC)) < timedelta(minutes=1)
    assert app.selectbox(key="range").value == "fixed"
    released = pressed(app, "Up to now again")
    assert released.selectbox(key="range").value == "2 h"
    assert "from" not in released.query_params


def test_choosing_fixed_holds_and_choosing_another_lets_go(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_opened(FLEET_PAGE, labelled_url, monkeypatch, range="24 h")
    checked(app.selectbox(key="range").set_value("fixed").run())
    held = instants(app)
    assert held["to"] - held["from"] == timedelta(hours=24)
    checked(app.selectbox(key="range").set_value("all").run())
    assert "from" not in app.query_params
    assert "in all stored time" in said(app)


def test_all_time_is_held_by_its_end(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = pressed(page_opened(FLEET_PAGE, labelled_url, monkeypatch, range="all"), "Hold this time")
    assert "from" not in app.query_params
    assert "5 engines to " in said(app)


def test_what_is_typed_is_in_the_viewers_zone_and_the_url_in_utc(
    labelled_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page_opened(FLEET_PAGE, labelled_url, monkeypatch, **NEVER)
    checked(app.text_input(key="to_typed").set_value("2026-11-03T05:30:00+05:30").run())
    assert app.query_params["to"] == "2026-11-03T00:00:00Z"
    assert "5 engines" in said(app)
    checked(app.text_input(key="to_typed").set_value("tomorrow").run())
    assert "tomorrow is no time such as" in said(app)
    assert "5 engines" in said(app)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"from": "yesterday"}, "from=yesterday, which is no instant"),
        ({"from": "garbage", "to": "2026-13-99"}, "to=2026-13-99, which is no instant"),
        ({"from": "9999-12-31"}, "from=9999-12-31, which is no instant of 1971 to 2199, such as"),
        ({"from": "0001-01-01T00:00:00+10:00"}, "from=0001-01-01T00:00:00+10:00, which is no instant of 1971"),
        ({"from": STUCK_THEN["to"], "to": STUCK_THEN["from"]}, "The time ends before it begins. Shown is 30 min."),
        ({"from": "2199-01-01"}, "The time begins later than now. Shown is 30 min."),
        ({"range": "fixed"}, "The address holds no time"),
    ],
)
def test_a_time_that_cannot_be_is_said(
    labelled_url: str, monkeypatch: pytest.MonkeyPatch, asked: dict[str, str], problem: str
) -> None:
    text = said(page_opened(FLEET_PAGE, labelled_url, monkeypatch, **asked))
    assert problem in text
    assert "Shown is 30 min." in text
    assert "in the last 30 minutes" in text


@pytest.mark.parametrize("page", [GRAPHS_PAGE, COMPARE_PAGE, ALERTS_PAGE])
def test_other_pages_hold_a_time_too(page: str, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_opened(page, labelled_url, monkeypatch, **NEVER)
    assert app.selectbox(key="range").value == "fixed"
    assert "Nothing to compare" in said(app) or "from 2026-10-01 00:00:00 to 2026-10-02 00:00:00" in said(app)


def test_parameters_of_ranges() -> None:
    begin, end = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, 12, tzinfo=UTC)
    held = held_range(begin, end, "then")
    assert time_parameters(held) == {"from_": "2026-11-01T00:00:00+00:00", "to": "2026-11-01T12:00:00+00:00"}
    assert time_parameters(held_range(None, end, "then")) == {"last_s": 0, "to": "2026-11-01T12:00:00+00:00"}
    assert bounds(RANGES["all"]) == {"from_": "1970-01-01"}
    assert bounds(held)["to"] == "2026-11-01T12:00:00+00:00"


def test_what_hardly_changes_is_asked_for_seldom() -> None:
    end = datetime(2026, 11, 1, 12, tzinfo=UTC)
    assert held_range(end - timedelta(minutes=1), end, "then").is_steady
    assert {name for name, choice in RANGES.items() if choice.is_steady} == {"12 h", "24 h", "7 d"}


@pytest.mark.parametrize(("length_s", "step_s"), [(600, 10), (7200, 30), (43_200, 120), (86_400, 300), (None, 1800)])
def test_estimates_have_a_step_that_suits_the_time(length_s: float | None, step_s: int) -> None:
    assert estimate_step_s(length_s) == step_s

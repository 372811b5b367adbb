"""Silences and their matchers; the URLs of receivers."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries.alerts.delivery.endpoint import endpoint, urls_in
from queries.alerts.delivery.silences import (
    KEPT_FOR,
    Matcher,
    OwnSilences,
    Silence,
    duration_of,
    matcher_of,
    new_silence,
)
from queries.errors import CallError

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
LABELS = {"alertname": "StuckInPlain", "host_name": "gpu-17"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("alertname=StuckInPlain", True),
        ('alertname="StuckInPlain"', True),
        ("alertname=Stuck", False),
        ("alertname!=StuckInPlain", False),
        ("alertname=~Stuck.*", True),
        ("alertname=~Stuck", False),
        ("host_name!~gpu-1.", False),
        ("cell=", True),
        ("cell!=", False),
        ("host_name = gpu-17", True),
    ],
)
def test_matchers_are_alertmanagers(text: str, matches: bool) -> None:
    assert matcher_of(text).matches(LABELS) is matches


@given(
    st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True),
    st.text(alphabet="abc-.:= é", max_size=8).map(str.strip),
    st.booleans(),
    st.booleans(),
)
def test_a_matcher_reads_as_it_is_written(name: str, value: str, is_regex: bool, is_equal: bool) -> None:
    matcher = Matcher(name=name, value=value, is_regex=is_regex, is_equal=is_equal)
    if value.startswith("~") or (not is_regex and value.startswith("=")):
        return
    assert matcher_of(str(matcher)) == matcher


@pytest.mark.parametrize("text", ["", "alertname", "=x", "9a=x", "host name=x", "a=~(", "a<3"])
def test_what_is_no_matcher_is_said(text: str) -> None:
    with pytest.raises(CallError, match="is no matcher"):
        matcher_of(text)


def test_durations_are_prometheus() -> None:
    assert duration_of("90m") == timedelta(minutes=90)
    assert duration_of("1d2h30m15s") == timedelta(days=1, hours=2, minutes=30, seconds=15)
    assert duration_of("2w") == timedelta(weeks=2)


@pytest.mark.parametrize("text", ["", "0m", "soon", "3", "-2h", "2h1d"])
def test_what_is_no_duration_is_said(text: str) -> None:
    with pytest.raises(CallError, match="is no duration"):
        duration_of(text)


@pytest.mark.parametrize("text", ["99999d", "3651d", "99999999999999w"])
def test_of_a_duration_that_is_too_long_the_longest_is_named(text: str) -> None:
    with pytest.raises(CallError, match=f"^'{text}' is too long: a silence lasts 3650d at most$"):
        duration_of(text)
    assert duration_of("3650d") == timedelta(days=3650)


def test_matchers_that_fit_everything_are_refused() -> None:
    with pytest.raises(CallError, match="at least one"):
        new_silence(["host_name=~.*"], "1h", "", "me", NOW)


def test_a_silence_ends_by_itself_and_is_forgotten_later(tmp_path: Path) -> None:
    silences = OwnSilences(tmp_path)
    made = silences.create(new_silence(["alertname=StuckInPlain"], "1h", "known", "me", NOW), NOW)
    assert [one.id for one in OwnSilences(tmp_path).active(NOW)] == [made]
    assert silences.active(NOW + timedelta(hours=1)) == []
    assert [one.id for one in silences.all()] == [made]
    later = NOW + timedelta(hours=1) + KEPT_FOR + timedelta(seconds=1)
    other = silences.create(new_silence(["alertname=ClockSkew"], "1h", "known", "me", later), later)
    assert [one.id for one in silences.all()] == [other]


def test_a_damaged_silence_silences_nothing_and_spares_the_others(tmp_path: Path) -> None:
    silences = OwnSilences(tmp_path)
    made = silences.create(new_silence(["alertname=StuckInPlain"], "1h", "known", "me", NOW), NOW)
    (tmp_path / "other.json").write_text('{"id": "other"')
    assert [one.id for one in silences.active(NOW)] == [made]


def test_only_what_runs_can_be_expired(tmp_path: Path) -> None:
    silences = OwnSilences(tmp_path)
    made = silences.create(new_silence(["alertname=StuckInPlain"], "1h", "known", "me", NOW), NOW)
    assert not silences.expire("another", NOW)
    assert silences.expire(made, NOW + timedelta(minutes=1))
    assert silences.active(NOW + timedelta(minutes=1)) == []
    assert not silences.expire(made, NOW + timedelta(minutes=2))


def test_a_silence_is_written_as_alertmanager_takes_it() -> None:
    posted = new_silence(["host_name!~gpu-1.*", "severity=page"], "1h", "known", "me", NOW).posted()
    assert posted == {
        "matchers": [
            {"name": "host_name", "value": "gpu-1.*", "isRegex": True, "isEqual": False},
            {"name": "severity", "value": "page", "isRegex": False, "isEqual": True},
        ],
        "startsAt": "2026-11-01T12:00:00Z",
        "endsAt": "2026-11-01T13:00:00Z",
        "createdBy": "me",
        "comment": "known",
    }
    assert Silence.model_validate(posted).matchers[0].matches({"host_name": "cpu"})


def test_urls_are_separated_by_commas_or_spaces() -> None:
    assert urls_in("") == urls_in(" , ") == []
    assert urls_in("http://a:1,https://b/x, mailto://c\nslack://d/,e/") == [
        "http://a:1", "https://b/x", "mailto://c", "slack://d/,e/",
    ]  # fmt: skip
    assert urls_in("mailto://me:pw@host?to=a@x,b@y") == ["mailto://me:pw@host?to=a@x,b@y"]


@pytest.mark.parametrize("url", ["ftp://me:secret@host", "me:secret", "http://", "http://me:secret@host:port", ""])
def test_a_wrong_url_is_said_without_its_secrets(url: str) -> None:
    with pytest.raises(CallError) as wrong:
        endpoint(url)
    assert "https://host:9093" in str(wrong.value)
    assert "secret" not in str(wrong.value)


def test_an_endpoint_shows_no_secret() -> None:
    of = endpoint("https://me:secret@host:9093/hidden/path?token=hidden")
    assert of.shown == "https://host:9093"
    assert "secret" not in repr(of)
    assert "hidden" not in repr(of)

"""Parameters: every type as the server reads it, and what is refused."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from clickhouse_connect.driver.exceptions import OperationalError

from queries.catalogue import find
from queries.client import connect, from_driver, parsed
from queries.errors import CallError, ParameterError, UnreachableError
from queries.parameters import bound, instant


def test_defaults_fill_what_is_not_given() -> None:
    values = bound(find("cells"), {"host": "node-1", "arm": None})
    assert values["host"] == "node-1"
    assert values["arm"] == ""
    assert values["stuck_above"] == "0.3"
    assert values["from"] == "1970-01-01 00:00:00.000000000"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (datetime(2026, 11, 1, 12, tzinfo=UTC), "2026-11-01 12:00:00.000000000"),
        (datetime(2026, 11, 1, 12, 0, 0, 5), "2026-11-01 12:00:00.000005000"),  # noqa: DTZ001 (UTC where no zone is named)
        (datetime(2026, 11, 1, 12, tzinfo=timezone(timedelta(hours=2))), "2026-11-01 10:00:00.000000000"),
        ("2026-11-01", "2026-11-01 00:00:00.000000000"),
        ("2026-11-01T12:00:00Z", "2026-11-01 12:00:00.000000000"),
        ("2026-11-01 12:00:00.123456789", "2026-11-01 12:00:00.123456789"),
        ("2026-11-01T12:00:00.5+02:00", "2026-11-01 10:00:00.500000000"),
        ("now", "2026-11-01 00:01:40.000000000"),
        ("-1.5m", "2026-11-01 00:00:10.000000000"),
        ("-1d", "2026-10-31 00:01:40.000000000"),
    ],
)
def test_instants(given: object, written: str) -> None:
    assert instant(given, now=lambda: 1793491300.0) == written


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("from", "yesterday"),
        ("from", "2026-13-01"),
        ("from", "1969-12-31"),
        ("from", "-99999999d"),
        ("stuck_above", "a third"),
        ("limit", "-1"),
        ("limit", "1.5"),
    ],
)
def test_a_wrong_value_names_the_parameter(name: str, value: str) -> None:
    with pytest.raises(ParameterError, match=f"parameter {name} is '{value}': "):
        bound(find("cells"), {name: value})


def test_booleans() -> None:
    assert bound(find("graph_costs"), {"by_cell": True})["by_cell"] == "true"
    with pytest.raises(ParameterError, match="true or false"):
        bound(find("graph_costs"), {"by_cell": "perhaps"})


def test_an_unknown_parameter_names_the_closest() -> None:
    with pytest.raises(ParameterError, match="no parameter 'hosts': did you mean host"):
        bound(find("cells"), {"hosts": "x"})


@pytest.mark.parametrize(
    "url", ["", "localhost:8123", "ftp://h/x", "http://", "http://h:99999", "http://h:0", "http://h:x"]
)
def test_a_wrong_url_is_one_clear_line(url: str) -> None:
    with pytest.raises(CallError, match="no ClickHouse URL"):
        parsed(url)


def test_a_clickhouse_that_is_away_is_one_clear_line_without_the_password() -> None:
    # Port 9 (discard) of the loopback: nothing listens there.
    with pytest.raises(UnreachableError, match=r"no ClickHouse answers at http://127\.0\.0\.1:9/db: start one") as away:
        connect("http://me:secret@127.0.0.1:9/db")
    assert "secret" not in str(away.value)
    assert away.value.exit_code == 3


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate", "?ca_cert=FILE"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "write http://"),
        ("('Connection aborted.', RemoteDisconnected())", "write https://"),
        ("Failed to resolve: [Errno -2] Name or service not known", "does not resolve"),
        ("Connection refused", "answers at http://db:8123/x: start"),
    ],
)
def test_why_nothing_answers_is_said(cause: str, said: str) -> None:
    wrong = OperationalError("Error executing HTTP request")
    wrong.__cause__ = OSError(cause)
    assert said in str(from_driver(wrong, "http://db:8123/x"))

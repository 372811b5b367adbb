"""Parameters: every type as the server reads it, and what is refused."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from clickhouse_connect.driver.exceptions import OperationalError
from typer.testing import CliRunner

from queries.catalogue import find, load
from queries.client import connect, from_driver, parsed
from queries.errors import CallError, ParameterError, UnreachableError
from queries.parameters import begun, bound, instant, written
from tachograph import application

A_TIME = "a time is wanted, like 2026-11-30T07:00 (UTC, or with +02:00), now, or -30m for half an hour ago (s, m, h, d)"


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
    ("name", "value", "wanted"),
    [
        ("from", "yesterday", A_TIME),
        ("from", "2026-13-01", A_TIME),
        ("from", "2026-11-30T27:00", A_TIME),
        ("from", "", A_TIME),
        ("from", "1969-12-31", "a time between 1970 and 2200 is wanted"),
        ("from", "0001-01-01T00:00:00+14:00", "a time between 1970 and 2200 is wanted"),
        ("from", "-99999999d", "a time between 1970 and 2200 is wanted"),
        ("from", f"-{'9' * 400}d", "a time between 1970 and 2200 is wanted"),
        ("stuck_above", "a third", "a number is wanted, like 0.3"),
        ("stuck_above", "nan", "a number is wanted, like 0.3"),
        ("stuck_above", "", "a number is wanted, like 0.3"),
        ("limit", "abc", "a whole number is wanted, 0 to 18,446,744,073,709,551,615"),
        ("limit", "-1", "a whole number is wanted, 0 to 18,446,744,073,709,551,615"),
        ("limit", "1.5", "a whole number is wanted, 0 to 18,446,744,073,709,551,615"),
        ("limit", "9" * 5000, "a whole number is wanted, 0 to 18,446,744,073,709,551,615"),
    ],
    ids=lambda text: text[:40],
)
def test_a_wrong_value_names_the_parameter_and_what_is_wanted(name: str, value: str, wanted: str) -> None:
    with pytest.raises(ParameterError) as refused:
        bound(find("cells"), {name: value})
    assert str(refused.value) == f"parameter {name} is {value!r}: {wanted}"


@pytest.mark.parametrize(
    "name", sorted(name for name, query in load().items() if {"from", "to"} <= {one.name for one in query.parameters})
)
def test_a_time_that_ends_before_it_begins_is_no_empty_answer(name: str) -> None:
    for end in ("2026-11-01T11:00", "2026-11-01T12:00", datetime(2026, 11, 1, 12, tzinfo=UTC)):
        with pytest.raises(ParameterError) as refused:
            bound(find(name), {"from": "2026-11-01T12:00", "to": end})
        assert str(refused.value).startswith("from is 2026-11-01 12:00:00 and to is 2026-11-01 1")
        assert str(refused.value).endswith(":00 (UTC): give the earlier one as from")
        assert refused.value.exit_code == 2
    assert bound(find(name), {"from": "-2h", "to": "-1h"})["to"]
    assert bound(find(name), {"from": "2190-01-01"})["from"] == "2190-01-01 00:00:00.000000000"


def test_relative_times_the_wrong_way_round_are_told_by_the_command() -> None:
    """Before anything is asked: no ClickHouse is there."""
    nowhere = ["--clickhouse-url", "http://127.0.0.1:9/x"]
    for command in (
        ["query", "cells", "-p", "from=-1h", "-p", "to=-2h"],
        ["postmortem", "--from", "now", "--to", "-1h"],
        ["compare", "--arm", "before,after", "--from", "now", "--to", "-1h"],
        ["changes", "--from", "now", "--to", "-1h"],
    ):
        done = CliRunner().invoke(application(), [*command, *nowhere])
        assert isinstance(done.exception, ParameterError)  # Exit code 2.
        assert str(done.exception).endswith("(UTC): give the earlier one as from")


@pytest.mark.parametrize(
    "command",
    [
        ["postmortem", "--from"],
        ["compare", "--from"],
        ["changes", "--from"],
        ["annotate", "--list", "--from"],
        ["alerts", "history", "--since"],
        ["alerts", "backtest", "--since"],
        ["alerts", "backtest", "--until"],
    ],
    ids=" ".join,
)
def test_a_time_that_lies_wholly_in_the_future_is_refused_before_anything_is_asked(command: list[str]) -> None:
    nowhere = ["--clickhouse-url", "http://127.0.0.1:9/x"]
    done = CliRunner().invoke(application(), [*command, "2199-01-01", *nowhere])
    assert isinstance(done.exception, CallError), done.output
    assert str(done.exception).startswith(f"{command[-1]} 2199-01-01 ")
    assert str(done.exception).endswith(": name an instant up to now (UTC)")
    assert (done.exception.exit_code, str(done.exception).count("\n")) == (2, 0)


def test_clocks_and_time_zones_that_differ_are_no_future() -> None:
    at = 1793491300.0  # 2026-11-01 00:01:40 UTC
    for text in ("now", "-1h", "2026-11-01T14:00", "2026-11-01T14:00-08:00", None):
        assert begun("--from", text, now=lambda: at) == text
    with pytest.raises(ParameterError, match="--from 2026-11-02T00:02 is more than a day ahead"):
        begun("--from", "2026-11-02T00:02", now=lambda: at)
    with pytest.raises(ParameterError, match="--from is 'tomorrow': a time is wanted"):
        begun("--from", "tomorrow", now=lambda: at)


def test_every_type_of_parameter_says_what_it_wants() -> None:
    """Text takes anything; no other type answers in Python's words."""
    parameters = {one.type: one for query in load().values() for one in query.parameters}
    assert {"String", "Bool", "Float64", "UInt64"} <= parameters.keys()
    for type_, parameter in parameters.items():
        if type_ == "String":
            assert written(parameter, "abc") == "abc"
            continue
        with pytest.raises(ParameterError, match=r"^parameter \w+ is 'abc': (a |true or false).*wanted"):
            written(parameter, "abc")


def test_a_signed_number_may_be_below_zero() -> None:
    signed = next(one for query in load().values() for one in query.parameters if one.type == "Int64")
    assert written(signed, "-1") == "-1"
    with pytest.raises(ParameterError, match="a whole number is wanted, -9,223,372,036,854,775,808 to 9,223,372,036"):
        written(signed, "1e3")


def test_a_whole_number_fits_its_type() -> None:
    small = next(one for query in load().values() for one in query.parameters if one.type == "UInt8")
    assert written(small, "255") == "255"
    with pytest.raises(ParameterError, match=r"is '256': a whole number is wanted, 0 to 255$"):
        written(small, "256")


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
        ("Read timed out. (read timeout=300)", "answers at http://db:8123/x (it does not answer within 300 s): start"),
        ("Connection to db timed out. (connect timeout=5)", "(it does not answer within 5 s): start"),
        ("[Errno 110] Connection timed out", "(it does not answer in time): start"),
        ("Connection refused", "answers at http://db:8123/x: start"),
    ],
)
def test_why_nothing_answers_is_said(cause: str, said: str) -> None:
    wrong = OperationalError("Error executing HTTP request")
    wrong.__cause__ = OSError(cause)
    assert said in str(from_driver(wrong, "http://db:8123/x"))

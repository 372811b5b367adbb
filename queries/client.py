"""ClickHouse over HTTP, by URL: the only thing that this package knows of storage."""

import base64
import contextlib
import functools
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError, OperationalError
from clickhouse_connect.driver.httpclient import HttpClient
from urllib3 import Timeout

from engine_hooks.first_answer import FIRST_ANSWER_S, waited_in_vain_s
from queries.errors import CallError, QueriesError, RefusedError, UnreachableError

DEFAULT_DATABASE = "tachograph"
DEFAULT_PORTS = {"http": 8123, "https": 8443}
CONNECT_TIMEOUT_S = 5
ANSWER_TIMEOUT_S = 300
DRIVERS_HEAD = re.compile(r"^Received ClickHouse exception, code: \d+, server response: (?=Code: )")
"""ClickHouse's own line has the code too."""
DRIVERS_TAIL = re.compile(r"( \(version [^()]*(\([^()]*\))?\))?( \(for url [^()]*\))?$")
"""The URL stands in front."""
CLIENTS_MAX = 8
"""Clients kept open by `connected`, one for each URL."""

# The driver logs what it raises; without a handler that would be a second line on standard error.
logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())


def connect(url: str) -> Client:
    """A client for `http[s]://[user:password@]host[:port][/database][?ca_cert=FILE]`, safe to share between threads.

    With https the server's certificate is verified: against the certificates in FILE (PEM), or else the system's.

    Raises:
        CallError: the URL is none of that form.
        UnreachableError: no ClickHouse answers there, or nothing within 10 s.
        RefusedError: it answers, and refuses.
    """
    place = parsed(url)
    ca_cert = trusted(place, url)
    with one_line(url):
        client = clickhouse_connect.get_client(
            interface=place.scheme,
            host=place.hostname or "",
            port=place.port or DEFAULT_PORTS[place.scheme],
            username=unquote(place.username) if place.username else None,
            password=unquote(place.password or ""),
            database=place.path.strip("/") or DEFAULT_DATABASE,
            ca_cert=ca_cert,
            connect_timeout=CONNECT_TIMEOUT_S,
            send_receive_timeout=FIRST_ANSWER_S,
            # A session serialises its queries; none is needed here.
            autogenerate_session_id=False,
        )
    # What the driver asks as it opens is small: a server that is busy answers it, one that hangs does not. A statement of
    # minutes is another matter, of which a server that works sends nothing.
    assert isinstance(client, HttpClient)  # noqa: S101 # the only kind for such a URL
    client.timeout = Timeout(connect=CONNECT_TIMEOUT_S, read=ANSWER_TIMEOUT_S)
    return client


@functools.lru_cache(maxsize=CLIENTS_MAX)
def connected(url: str) -> Client:
    """The one client that this process keeps for a URL."""
    return connect(url)


def parsed(url: str) -> SplitResult:
    """The parts of a ClickHouse URL.

    Raises:
        CallError: it is none.
    """
    try:
        place = urlsplit(url)
        port = place.port
    except ValueError as wrong:
        raise CallError(f"{shown(url)} is no ClickHouse URL: {wrong}") from wrong
    if place.scheme not in DEFAULT_PORTS or not place.hostname or port == 0:
        raise CallError(f"{shown(url)} is no ClickHouse URL: it looks like http://user:password@host:8123/database")
    return place


def trusted(place: SplitResult, url: str) -> str | None:
    """The file of certificates that a URL names; None are the system's.

    Raises:
        CallError: the URL asks for anything else after `?`, or the file is not there.
    """
    asked = parse_qs(place.query, keep_blank_values=True)
    file = asked.pop("ca_cert", [None])[0]
    if asked:
        raise CallError(f"{shown(url)}: ClickHouse URLs take ?ca_cert=FILE only, not {', '.join(asked)}")
    if file and not Path(file).is_file():
        raise CallError(f"{shown(url)}: there is no file {file} of certificates")
    return file


def shown(url: str) -> str:
    """A URL without its password."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme if mark else ''}{mark}{(rest if mark else url).rpartition('@')[2]}"


def credentials_in(url: str) -> dict[str, str]:
    """The header that bears a URL's user and password; none where it has no password."""
    place = urlsplit(url)
    if place.password is None:
        return {}
    pair = f"{unquote(place.username or '')}:{unquote(place.password)}"
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


@contextlib.contextmanager
def one_line(url: str) -> Iterator[None]:
    """Turn errors of the driver into this package's, one clear line each.

    Raises:
        UnreachableError: no ClickHouse answers.
        RefusedError: it answered with an error.
    """
    try:
        yield
    except (OperationalError, DatabaseError) as wrong:
        raise from_driver(wrong, url) from wrong
    except ClickHouseError as wrong:
        raise RefusedError(f"ClickHouse at {shown(url)}: {first_line(wrong)}") from wrong


def from_driver(wrong: Exception, url: str) -> QueriesError:
    """What a driver's error means for the user."""
    text = first_line(wrong)
    code = getattr(wrong, "code", None)
    if code is None and "Code:" not in text:
        return UnreachableError(unreachable(url, reason(wrong)))
    missing = missing_in(text)
    if missing in (f"table {EXECUTIONS}", f"database {urlsplit(url).path.strip('/')}"):
        return RefusedError(f"ClickHouse at {shown(url)} has no {EXECUTIONS}: the collector creates it there ({text})")
    if missing:
        return RefusedError(f"ClickHouse at {shown(url)} has no {missing} ({text})")
    return RefusedError(f"ClickHouse at {shown(url)}: {text}")


def unreachable(url: str, why: str) -> str:
    """The line for a ClickHouse that does not answer; `why` in brackets, or ''."""
    return (
        f"no ClickHouse answers at {shown(url)}{why}: start one with `tachograph collect`,"
        " or name another by TACHOGRAPH_CLICKHOUSE_URL"
    )


EXECUTIONS = "graph_executions"
MISSING = re.compile(r"(?:expression identifier '|Table |(Database) )(?:[^'. ]+\.)?([^'. ]+)(?:'| does)")


def missing_in(text: str) -> str:
    """What an error of ClickHouse says is not there, as `table cells` or `database other`; '' where it says no such thing."""
    found = MISSING.search(text) if "UNKNOWN_TABLE" in text or "UNKNOWN_DATABASE" in text else None
    return f"{'database' if found[1] else 'table'} {found[2].replace('`', '')}" if found else ""


REASONS = {
    "certificate verify failed": "its certificate is not trusted here; name the CA by ?ca_cert=FILE in the URL",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not trusted here; name the CA by ?ca_cert=FILE in the URL",
    "WRONG_VERSION_NUMBER": "it does not speak TLS; write http://",
    "wrong version number": "it does not speak TLS; write http://",
    "Connection aborted": "it hangs up; where it speaks TLS, write https://",
    "Name or service not known": "its name does not resolve",
    "name resolution": "its name does not resolve",
    "timed out": "it does not answer in time",
}
"""What a library says of a connection that fails, and what it means for the user."""


def reason(wrong: Exception) -> str:
    """Why nothing answers, in brackets, where it is more than that nothing listens there."""
    said = []
    chain: BaseException | None = wrong
    while chain is not None:
        said.append(str(chain))
        chain = chain.__cause__ or chain.__context__
    text = " ".join(said)
    if (waited_s := waited_in_vain_s(text)) is not None:
        return f" (it does not answer within {waited_s:g} s)"
    return next((f" ({means})" for sign, means in REASONS.items() if sign in text), "")


def first_line(wrong: Exception) -> str:
    """The first line of an error, bounded, without what the driver repeats around it."""
    lines = str(wrong).strip().splitlines()
    told = DRIVERS_TAIL.sub("", DRIVERS_HEAD.sub("", lines[0])) if lines else ""
    return told[:400] or type(wrong).__name__

"""Giving orders, whether a collector runs or not: to it by its door, or to the store directly."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, Protocol

from collector.access.certificate import trusting
from collector.control.key import read_key
from collector.control.names import TELL_STORE
from collector.control.settings import ControlSettings
from collector.errors import CollectorError
from collector.spool.database import SpoolError, hold, spool_file, was_held
from engine_hooks.first_answer import FIRST_ANSWER_S, is_silent

CONTROL_PATH: Final = "/control"


class NotTakenError(CollectorError):
    """The collector did not carry out an order, or cannot be reached."""


class WrongOrderError(NotTakenError):
    """What was ordered cannot be, by any collector in any state."""

    exit_code = 2


class StoreNotAnsweringError(NotTakenError):
    """The collector was reached, and its store does not answer it."""

    exit_code = 3


STATUS_BY_EXIT_CODE: Final = {WrongOrderError.exit_code: 422, StoreNotAnsweringError.exit_code: 503}
"""How the door answers an error that would end a command with this exit code; every other one by 409."""
_ERROR_BY_STATUS: Final = {422: WrongOrderError, 503: StoreNotAnsweringError}


class Taker(Protocol):
    """Whoever carries out orders: `Orders`, or the door of a collector."""

    def carry_out(self, name: str, values: Mapping[str, Any]) -> Any: ...


@contextmanager
def taker(settings: ControlSettings, pinned: Mapping[str, int] | None = None) -> Iterator[Taker]:
    """The collector that runs on the data directory; where none does, the store itself.

    A URL that was named is obeyed: the collector is asked to carry out orders only where its store is that one.

    Args:
        settings: Where it is.
        pinned: What `parsed_retention` makes of them, where the caller had to know; None has it parsed here.

    Raises:
        RetentionSettingError: what the settings pin cannot be, whoever would carry the orders out.
        CollectorError: there is neither.
    """
    from collector.store.retention import parsed_retention  # noqa: PLC0415 -- --help stays quick

    pinned = parsed_retention(settings.retention) if pinned is None else pinned
    if not settings.clickhouse_url and not _is_there(settings.data_dir):
        raise NotTakenError(f"{settings.data_dir} holds no store: name the collector's --data-dir")
    spool = spool_file(settings.data_dir)
    try:
        # What nobody has held yet is not made for a server's sake.
        held: AbstractContextManager[object] = (
            nullcontext() if settings.clickhouse_url and not was_held(spool) else hold(spool)
        )
    except SpoolError:
        door = Door(settings)
        if not settings.clickhouse_url or _is_its_store(door, settings.clickhouse_url):
            yield door
            return
        held = nullcontext()
    from collector.control.alone import orders_alone  # noqa: PLC0415 -- the engine takes a second

    with held, orders_alone(settings, pinned) as orders:
        yield orders


def _is_there(data_dir: Path) -> bool:
    """Whether a collector has run there, or a store lies there. Makes nothing."""
    if was_held(spool_file(data_dir)):
        return True
    from collector.store.clickhouse import engine_path  # noqa: PLC0415 -- --help stays quick

    return engine_path(data_dir).is_dir()


def _is_its_store(door: "Door", clickhouse_url: str) -> bool:
    from collector.store.clickhouse import place_of  # noqa: PLC0415 -- --help stays quick

    return bool(place_of(clickhouse_url) == door.carry_out(TELL_STORE, {}))


class Door:
    """The control door of a running collector."""

    def __init__(self, settings: ControlSettings) -> None:
        """Raises:
        NotTakenError: whoever listens there says nothing within 10 s, or there is no key.
        """
        self._url = settings.own_url(settings.otlp_http_port)
        self._key = read_key(settings.data_dir)
        self._context: ssl.SSLContext | None = trusting(settings.tls_ca) if self._url.startswith("https:") else None
        if is_silent(self._url, "/healthz", trusted=settings.tls_ca):
            raise NotTakenError(_no_collector(self._url, f"nothing comes back within {FIRST_ANSWER_S:.0f} s"))

    def carry_out(self, name: str, values: Mapping[str, Any]) -> Any:
        """Have it done. Waits for as long as it takes: a backup is copied.

        Raises:
            NotTakenError: it was not; the text is the collector's, and the exit code that of the command without one.
        """
        request = urllib.request.Request(  # noqa: S310 -- http or https, see own_url
            f"{self._url}{CONTROL_PATH}/{name}",
            json.dumps(dict(values)).encode(),
            {"authorization": f"Bearer {self._key}", "content-type": "application/json"},
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, context=self._context) as answer:  # noqa: S310
                return json.loads(answer.read())["done"]
        except urllib.error.HTTPError as refusal:
            with refusal:
                error = _ERROR_BY_STATUS.get(refusal.code, NotTakenError)
                raise error(_told(refusal.read()) or f"the collector answers {refusal.code}") from refusal
        except (OSError, ValueError, KeyError) as error:
            raise NotTakenError(_no_collector(self._url, getattr(error, "reason", error))) from error


def _no_collector(url: str, why: object) -> str:
    return (
        f"no collector answers at {url} ({why}), though one holds the data directory: it may be just starting or ending, "
        "so try again; else set TACHOGRAPH_OTLP_HTTP_PORT as it has it"
    )


def _told(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return ""

"""Tokens and passwords: accepted or not, in constant time, and never shown.

CollectorError
└── AccessError   a setting of this package cannot be used: which one, why, what to do
"""

import hashlib
import hmac
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from collector.errors import CollectorError

log = structlog.get_logger(__name__)


class AccessError(CollectorError):
    """Credentials or a certificate that cannot be used. Never says what a secret is."""

    exit_code = 2


class Secrets:
    """One or several secrets of equal standing; several, so that one can be replaced while others still use it.

    Those in a file are read again when the file changes, so that a new one is accepted, and an old one no longer,
    without a restart. A file that can no longer be read changes nothing. May be asked from any thread.
    """

    def __init__(self, values: Sequence[str], reread: Callable[[], Sequence[str] | None] = lambda: None) -> None:
        self._values = tuple(values)
        self._reread = reread

    def __repr__(self) -> str:
        return "Secrets(…)"

    def admits(self, given: str) -> bool:
        """Whether this is one of them. Takes as long for a near miss as for a wild guess."""
        asked = _digest(given)
        # All of them, whichever fits.
        return sum(hmac.compare_digest(asked, _digest(value)) for value in self._current()) > 0

    def first(self) -> str:
        """The one that our own clients present."""
        return self._current()[0]

    def _current(self) -> tuple[str, ...]:
        if (values := self._reread()) is not None:
            self._values = tuple(values)
        return self._values


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()


def given_secrets(values: Sequence[str], setting: str) -> Secrets:
    """Secrets that came in the environment.

    Raises:
        AccessError: there is none, or one that no header can carry.
    """
    return Secrets(_checked(values, setting))


def secrets_in(path: Path, setting: str) -> Secrets:
    """Secrets of a file, one a line.

    Raises:
        AccessError: it cannot be read, is empty, or holds one that no header can carry.
    """
    watched = _WatchedFile(path, setting)
    return Secrets(watched.read(), watched.read_if_changed)


class _WatchedFile:
    """A file of secrets, and what it looked like when it was last read."""

    def __init__(self, path: Path, setting: str) -> None:
        self._path = path
        self._setting = setting
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] = ()

    def read(self) -> Sequence[str]:
        try:
            self._seen = self._looks()
            lines = self._path.read_text().splitlines()
        except (OSError, ValueError) as error:
            raise AccessError(f"{self._setting}: {self._path} cannot be read ({_why(error)})") from error
        return _checked(lines, f"{self._setting} ({self._path})")

    def read_if_changed(self) -> Sequence[str] | None:
        with self._lock:
            before = self._seen
            try:
                return self.read() if self._looks() != before else None
            except AccessError as error:
                log.warning("secrets not read again; the former ones stay", error=str(error))
            except OSError as error:
                if before:
                    log.warning("secrets are gone; the former ones stay", setting=self._setting, error=_why(error))
                self._seen = ()
            return None

    def _looks(self) -> tuple[int, ...]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino


def _checked(values: Sequence[str], setting: str) -> list[str]:
    kept = [stripped for value in values if (stripped := value.strip())]
    if not kept:
        raise AccessError(f"{setting} holds nothing: put a long random text there (openssl rand -hex 32)")
    if not all(value.isascii() and value.isprintable() for value in kept):
        raise AccessError(f"{setting} holds what no header can carry: use printable ASCII")
    return kept


def _why(error: OSError | ValueError) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else "it is not UTF-8"

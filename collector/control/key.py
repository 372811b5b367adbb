"""The key to a collector's control door: a file in its data directory that nobody but its user may read.

Whoever may read that directory's files may do to the store what they like anyway; so the door asks for no more than that,
and no less, whatever address the collector listens on.
"""

import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from collector.errors import CollectorError

KEY_FILE: Final = "control.key"


class NoKeyError(CollectorError):
    """The key cannot be read or written."""


def make_key(data_dir: Path) -> str:
    """A new key, written where only this user can read it. It holds until the next one.

    Raises:
        NoKeyError: the directory cannot be written.
    """
    key = secrets.token_hex(32)
    file = data_dir / KEY_FILE
    fresh = file.with_name(f"{KEY_FILE}.{os.getpid()}")
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            opened.write(key)
        fresh.replace(file)
    except OSError as error:
        raise NoKeyError(f"{file} cannot be written ({error.strerror}): name another --data-dir") from error
    return key


def read_key(data_dir: Path) -> str:
    """The key of the collector that runs on a data directory.

    Raises:
        NoKeyError: it is not there, or not ours to read.
    """
    file = data_dir / KEY_FILE
    try:
        return file.read_text().strip()
    except OSError as error:
        raise NoKeyError(
            f"{file} cannot be read ({error.strerror}): run this as the collector's user, with its --data-dir"
        ) from error


def fits(key: str, authorization: str) -> bool:
    """Whether an `Authorization` header bears the key."""
    scheme, _, given = authorization.strip().partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(errors="replace"), key.encode())

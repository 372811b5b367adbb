"""Whether whoever listens at a URL answers at all: found out before something is asked that may well take minutes."""

import re
import ssl
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

FIRST_ANSWER_S: Final = 10.0
"""So long, in s, may the first answer take. A server that is busy answers a page that asks nothing of it in time."""
_IN_VAIN: Final = re.compile(r"timed out\. \((?:read|connect) timeout=([\d.]+)\)")


def waited_in_vain_s(said: str) -> float | None:
    """How long urllib3 says that it waited for a server that sent nothing, or a machine that took no connection, in s; None
    where it says something else."""
    waited = _IN_VAIN.search(said)
    return float(waited[1]) if waited else None


def is_silent(server: str, page: str, port: int | None = None, trusted: Path | str | None = None) -> bool:
    """Whether nothing comes back from a server within `FIRST_ANSWER_S`, though it may take the connection.

    Whatever comes back is an answer: a refusal, an error, a certificate that is not trusted. And what cannot be connected
    to is not silent: whoever asks there next says why. Raises nothing.

    Args:
        server: Its URL, http or https; a user, a path and a query in it are left out.
        page: A path that any server of its kind has ready, and gives to anybody.
        port: Where the URL names none; None is the scheme's.
        trusted: Certificates that vouch for it, PEM; None are the system's.
    """
    try:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https"):
            return False
        place = parts.netloc.rpartition("@")[2].removesuffix(":")
        url = f"{parts.scheme}://{place}{f':{port}' if port and parts.port is None else ''}{page}"
        context = ssl.create_default_context(cafile=trusted) if parts.scheme == "https" else None
        with urllib.request.urlopen(url, timeout=FIRST_ANSWER_S, context=context):  # noqa: S310 -- the caller's URL
            return False
    except HTTPError as answer:
        answer.close()
        return False
    except URLError as wrong:
        return isinstance(wrong.reason, TimeoutError)
    except TimeoutError:
        return True
    except (OSError, ValueError, HTTPException):
        return False

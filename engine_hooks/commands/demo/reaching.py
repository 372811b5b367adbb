"""Whether anything listens where executions are to be sent."""

import socket
from typing import Final

import typer

from engine_hooks.recorder.sending import endpoint_url

WITHIN_S: Final = 2.0
PORTS: Final = {"http": 80, "https": 443}


def warn_where_nothing_listens(endpoint: str) -> None:
    """One line on standard error where no connection can be made: the demo runs, and all it records is lost.

    Raises:
        SendError: the endpoint is no URL.
    """
    url = endpoint_url(endpoint)
    try:
        socket.create_connection((url.hostname or "", url.port or PORTS[url.scheme]), WITHIN_S).close()
    except OSError as error:
        typer.echo(
            f"nothing listens at {endpoint} ({error.strerror or error}), so that what is recorded will be lost: "
            "start a collector with `tachograph up` or `tachograph collect`",
            err=True,
        )

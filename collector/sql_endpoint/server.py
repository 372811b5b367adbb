"""The endpoint served in this process, by a thread of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import ClassVar

import uvicorn

from collector.errors import CollectorError
from collector.sql_endpoint.app import SqlEndpoint, application
from collector.sql_endpoint.limits import QueryLimits

# Answers under way at the end get this long, then they are cut.
_SHUTDOWN_S = 2


class PortTakenError(CollectorError):
    """The endpoint cannot listen where it should."""

    exit_code: ClassVar[int] = 1


@contextmanager
def serving_sql(
    connection_string: str, database: str, host: str = "127.0.0.1", port: int = 0, limits: QueryLimits | None = None
) -> Iterator[str]:
    """Serve the engine that is open on this connection string while the context lasts, and give its URL.

    Port 0 takes a free one.

    Raises:
        PortTakenError: nothing can listen there.
    """
    with closing(_listening(host, port)) as listener:
        endpoint = SqlEndpoint(connection_string, database, limits or QueryLimits())
        app = application(endpoint)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=_SHUTDOWN_S
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), name="sql-endpoint", daemon=True)
        thread.start()
        try:
            bound_host, bound_port = listener.getsockname()[:2]
            shown = f"[{bound_host}]" if ":" in bound_host else bound_host
            yield f"http://{shown}:{bound_port}/{database}"
        finally:
            server.should_exit = True
            endpoint.kill_all()
            thread.join()


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that a first request waits rather than fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise PortTakenError(
            f"port {port} on {host} cannot be used for ClickHouse HTTP ({error.strerror}): "
            "free it or set TACHOGRAPH_CLICKHOUSE_PORT"
        ) from error

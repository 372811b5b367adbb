"""The endpoint served in this process, by a thread of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from collector.access.access import Access, Count, count_nothing
from collector.http_server import HttpServer
from collector.ports import bind, host_and_port, port_of
from collector.sql_endpoint.app import SqlEndpoint, application
from collector.sql_endpoint.limits import QueryLimits


@contextmanager
def serving_sql(
    connection_string: str,
    database: str,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    limits: QueryLimits | None = None,
    access: Access | None = None,
    count: Count = count_nothing,
    observe_s: Callable[[float], object] | None = None,
) -> Iterator[str]:
    """Serve the engine that is open on this connection string while the context lasts, and give its URL.

    Port 0 takes a free one. Whoever is turned away is counted (door `sql`, reason); `observe_s` is told how long each
    request took.

    Raises:
        PortTakenError: nothing can listen there.
    """
    listening = bind(host, port, "TACHOGRAPH_CLICKHOUSE_PORT")
    access = access or Access()
    endpoint = SqlEndpoint(connection_string, database, limits or QueryLimits(), access, count, observe_s=observe_s)
    server = HttpServer(
        application(endpoint),
        listening,
        "sql-endpoint",
        certificate=access.certificate,
        count=partial(count, "sql"),
    )
    url = f"{access.scheme}://{host_and_port(host, port_of(listening))}/{database}"
    server.start()
    try:
        yield url
    finally:
        # First, so that the server need not wait for them.
        endpoint.kill_all()
        server.stop()

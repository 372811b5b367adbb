"""`tachograph mcp`: a Model Context Protocol server, for agents."""

from typing import Protocol


class Settings(Protocol):
    """What this command needs to know."""

    @property
    def clickhouse_url(self) -> str: ...


def mcp(settings: Settings) -> None:
    """Serve the Model Context Protocol on standard input and output, read-only, until the client goes.

    An agent can then ask why a cell was slow. In its configuration: command `tachograph`, arguments `mcp`.
    """
    from queries.mcp_server import server  # noqa: PLC0415 (slows the start)

    server(settings.clickhouse_url).run("stdio")

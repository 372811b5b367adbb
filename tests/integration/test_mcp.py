"""The Model Context Protocol server, asked by the package's own client."""

import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from clickhouse_connect.driver.client import Client as ClickHouse
from mcp import Client, StdioServerParameters

from queries.mcp_server import in_arguments, server
from tests.fixtures.query_rows import insert_file

ROOT = Path(__file__).parents[2]
TOOLS = {"cells", "postmortem", "findings", "replay", "compare", "catalogue", "ask", "sql"}


@pytest.fixture
def url(clickhouse: ClickHouse, clickhouse_url: str, cases: Path) -> str:
    for cell in ("r008", "r014"):
        insert_file(clickhouse, cases / f"cells/{cell}.otlp.gz")
    return clickhouse_url


def asked(url: str, tool: str, **arguments: object) -> Any:
    """What a tool answers: its data, or its text where it has only that."""

    async def ask(client: Client) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        data = result.structured_content or {}
        return data.get("result", data)

    return within(url, ask)


def refused(url: str, tool: str, **arguments: object) -> str:
    async def ask(client: Client) -> Any:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        return result.content[0].text  # type: ignore[union-attr]

    return str(within(url, ask))


def within(url: str, ask: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        async with Client(server(url)) as client:
            return await ask(client)

    return anyio.run(main)


def test_every_tool_says_that_it_only_reads(url: str) -> None:
    async def ask(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = within(url, ask)
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)


def test_from_the_cells_to_the_cause(url: str) -> None:
    cells = asked(url, "cells", since="2026-11-01")
    assert cells["rows_in_all"] == 2
    (stuck,) = [cell for cell in cells["rows"] if cell["stuck"]]
    place = {"cell": stuck["cell"], "engine": stuck["service_instance_id"]}
    assert "Execution 784 of P128" in asked(url, "postmortem", **place)
    assert asked(url, "findings", **place)["diagnosis"]["label"] == "estimate_inflation"
    replay = asked(url, "replay", model="drained_share", simulate=False, **place)
    assert replay["exact"]["decisions_different"] > 1900
    assert [one["differs"] for one in replay["exact"]["decision_list"]] == [True] * 50


def test_questions_of_the_catalogue(url: str) -> None:
    assert "estimate_inflation" in asked(url, "catalogue")
    answer = asked(url, "ask", query="executions", parameters={"cell": "bench-r014"}, rows_max=3)
    assert len(answer["rows"]) == 3
    assert answer["rows_in_all"] > 2000


def test_sql_is_bounded_and_only_reads(url: str) -> None:
    answer = asked(url, "sql", statement="SELECT number FROM numbers(1000000000)", rows_max=5)
    assert answer == {
        "columns": [{"name": "number", "type": "UInt64"}],
        "rows": [[n] for n in range(5)],
        "cut_off": True,
    }
    counted = asked(url, "sql", statement="SELECT count() AS n, max(started_at) AS last FROM graph_executions")
    assert counted["rows"][0][0] > 3000
    assert "READONLY" in refused(url, "sql", statement="DROP TABLE graph_executions")
    assert "READONLY" in refused(url, "sql", statement="SELECT 1 SETTINGS readonly = 0")


def test_what_goes_wrong_is_one_line(url: str) -> None:
    for said in (
        refused(url, "postmortem", cell="no-such-cell"),
        refused(url, "ask", query="no_such_query"),
        refused(url, "compare", before="one", after="other"),
        refused(url, "compare", metric="speed"),
        refused(url, "sql", statement=" "),
        refused(url, "replay", cell="bench-r014", model="no_such_model"),
        refused(url, "cells", since="2199-01-01"),
        refused(url, "compare", since="2199-01-01"),
        refused("http://127.0.0.1:9/tachograph", "cells"),
    ):
        assert len(said.strip().splitlines()) == 1, said
        assert "Traceback" not in said


def test_arguments_that_a_tool_does_not_know_are_refused(url: str) -> None:
    """Left out in silence, a filter would seem to hold."""
    for name, value in {"from": "-1h", "limit": 5}.items():
        assert f"no argument {name!r}: cells takes since, until, host" in refused(url, "cells", **{name: value})


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("sql", {"sql": "SELECT 1"}, "'statement' is missing; no argument 'sql': sql takes statement (needed), rows_max"),
        ("sql", {"statement": "SELECT 1", "rows_max": 0}, "'rows_max' should be greater than or equal to 1, not 0: sql"),
        ("sql", {"statement": ["SELECT", "1"]}, "'statement' should be a valid string, not ['SELECT', '1']: sql takes"),
        ("catalogue", {"topic": "cells"}, "no argument 'topic': catalogue takes no arguments"),
        ("ask", {"query": "cells", "parameters": {"limit": [3]}}, "'parameters.limit' should be a valid string, not [3]: "),
        *((tool, {"h" * 2000: 1}, f"{tool} takes ") for tool in sorted(TOOLS)),
    ],
)  # fmt: skip
def test_wrong_arguments_are_one_line_that_names_the_right_ones(
    tool: str, arguments: dict[str, Any], told: str
) -> None:
    said = refused("http://127.0.0.1:9/tachograph", tool, **arguments)
    assert told in said
    assert not [one for one in ("\n", "pydantic", "input_type") if one in said]
    assert len(said) < 1200


def test_as_a_process_of_its_own_over_stdio(url: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TACHOGRAPH_")}
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tachograph", "mcp"],
        cwd=ROOT,
        env=environment | {"TACHOGRAPH_CLICKHOUSE_URL": url},
    )

    async def main() -> Any:
        async with Client(command) as client:
            return await client.call_tool("cells", {"since": "2026-11-01"})

    with anyio.from_thread.start_blocking_portal() as portal:
        result = portal.call(main)
    assert (result.structured_content or {})["rows_in_all"] == 2


def test_errors_name_arguments_and_not_the_flags_of_a_command() -> None:
    assert in_arguments("narrow the time by --from and --to") == "narrow the time by since and until"
    assert in_arguments("it cannot be simulated; --form exact needs none").endswith("; simulate=false needs none")
    assert in_arguments("no cell x--from y") == "no cell x--from y"

"""A Model Context Protocol server over the stored executions, read-only: for agents that ask why a cell was slow.

Each tool is thin over the function that the command of the same name uses. What goes wrong is answered as a tool
error of one line.

Source: https://modelcontextprotocol.io/specification
"""

import json
import re
from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any, Final, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import Field, ValidationError

from engine_hooks.commands.terminal import shortened
from queries.ad_hoc import ROWS_MAX, ask
from queries.catalogue import find, load
from queries.compare.cells import labels_named
from queries.compare.comparison import Metric
from queries.compare.document import document
from queries.compare.stored import compare_stored
from queries.errors import QueriesError
from queries.parameters import begun
from queries.postmortem.machine import json_of
from queries.postmortem.markdown import markdown_of
from queries.postmortem.told import told
from queries.replay import screen
from queries.replay.replaying import Form, replayed
from queries.runner import run_raw

P = ParamSpec("P")
T = TypeVar("T")
Document = dict[str, Any]

INSTRUCTIONS: Final = """Every graph execution of LLM inference engines, stored in ClickHouse, with what the engine's
scheduler believed. Begin with `cells`: it lists stretches of 30 s of each engine, with plain_fraction and the flags
`stuck` (in plain decode) and `inflated` (estimates that charge more than graphs cost). `postmortem` tells why a cell
was slow, `findings` says the same as data, `replay` what another cost model would have done, `compare` whether one
arm of a benchmark beats another. `catalogue` lists further questions for `ask`; `sql` takes any statement that reads."""
FLAG: Final = re.compile(r"(?<!\S)--(?P<name>form exact|[a-z][a-z-]*)")
ARGUMENTS: Final = {
    "from": "since",
    "to": "until",
    "form exact": "simulate=false",
    "param": "parameters",
}
"""What a command's flag is called here, where it is called otherwise."""
SEEDS: Final = 8
"""Simulated runs of a closed loop: a few seconds."""

Cell = Annotated[str, Field(description="As `cells` names it.")]
Engine = Annotated[str, Field(description="service_instance_id; needed where several engines have such a cell.")]
Instant = Annotated[str | None, Field(description="ISO 8601, or -15m for fifteen minutes ago.")]
RowsMax = Annotated[int, Field(description="At most so many rows.", ge=1, le=ROWS_MAX)]


def one_line(function: Callable[P, T]) -> Callable[P, T]:
    """Foreseen errors as the protocol's."""

    @wraps(function)
    def guarded(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except QueriesError as wrong:
            raise ToolError(in_arguments(str(wrong))) from wrong

    return guarded


def in_arguments(told: str) -> str:
    """An error that names the flags of a command, as whoever calls a tool knows them."""
    return FLAG.sub(lambda flag: ARGUMENTS.get(flag["name"], flag["name"].replace("-", "_")), told)


def wrong_arguments(wrong: ValidationError, tool: Tool) -> str:
    """What is wrong with the arguments of a call, in one line, and which the tool takes."""
    told = []
    for error in wrong.errors(include_url=False):
        name = ".".join(map(str, error["loc"]))
        match error["type"]:
            case "extra_forbidden":
                told.append(f"no argument {name!r}")
            case "missing":
                told.append(f"{name!r} is missing")
            case _:
                told.append(f"{name!r} {error['msg'].removeprefix('Input ')}, not {error['input']!r}")
    needed = tool.parameters.get("required", ())
    takes = [f"{name} (needed)" if name in needed else name for name in tool.parameters["properties"]]
    return shortened(f"{'; '.join(told)}: {tool.name} takes {', '.join(takes) or 'no arguments'}")


class StrictTool(Tool):
    """A tool that says in one line which arguments it takes; the base class would tell its validator's inner workings."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as wrong:
            raise ToolError(f"Error executing tool {self.name}: {wrong_arguments(wrong, self)}") from wrong
        return await super().run(arguments, context, convert_result)


def rows_of(name: str, url: str, rows_max: int, values: dict[str, Any]) -> Document:
    """A query's answer as ClickHouse writes it, so that nothing is rounded."""
    lines = run_raw(name, url, "JSONEachRow", values).splitlines()
    return {"rows": [json.loads(line) for line in lines[:rows_max]], "rows_in_all": len(lines)}


class Tools:
    """The tools, over one ClickHouse."""

    def __init__(self, clickhouse_url: str) -> None:
        self._url = clickhouse_url

    @one_line
    def cells(
        self,
        since: Instant = None,
        until: Instant = None,
        host: Annotated[str, Field(description="host_name; '' is any.")] = "",
        engine: Annotated[str, Field(description="service_instance_id; '' is any.")] = "",
        rows_max: RowsMax = 50,
    ) -> Document:
        """How each cell fared, newest first: plain_fraction, stuck, inflated, tokens/s, executions lost."""
        values = {"from": begun("since", since), "to": until, "host": host, "service_instance_id": engine}
        return rows_of("cells", self._url, rows_max, values)

    @one_line
    def postmortem(self, cell: Cell, engine: Engine = "") -> str:
        """Why a cell was slow, or that it was not, as Markdown: cause, evidence, loss, and the SQL behind it."""
        return markdown_of(told(self._url, cell, engine).story)

    @one_line
    def findings(self, cell: Cell, engine: Engine = "") -> Document:
        """The same as data: typed findings with evidence, confidence, tokens lost, verdict on being in plain."""
        return json_of(told(self._url, cell, engine).story, with_sql=False)

    @one_line
    def replay(
        self,
        cell: Cell,
        model: Annotated[str, Field(description="exposed_mean, drained_share, startup_median or idle_gap.")],
        engine: Engine = "",
        simulate: Annotated[bool, Field(description="Also simulate the cell with that model in charge.")] = True,
        rows_max: RowsMax = 50,
    ) -> Document:
        """What another cost model would have done with a cell, and in tokens/s by simulation. Of the decisions that it
        would have taken otherwise the first `rows_max` are listed."""
        form = Form.BOTH if simulate else Form.EXACT
        told = screen.as_json(replayed(self._url, engine, cell, model, form=form, seeds=SEEDS))
        if exact := told["exact"]:
            otherwise = [one for one in exact["decision_list"] if one["differs"]]
            exact["decision_list"] = otherwise[:rows_max]
        return told

    @one_line
    def compare(
        self,
        *,
        before: Annotated[str, Field(description="cell_arm compared with.")] = "before",
        after: Annotated[str, Field(description="cell_arm judged.")] = "after",
        by: Annotated[str, Field(description="What makes a row, comma-separated.")] = "host,package",
        metric: Annotated[str, Field(description="tokens_per_s or plain_fraction.")] = Metric.TOKENS_PER_S.value,
        since: Instant = None,
        until: Instant = None,
    ) -> Document:
        """Two arms of a benchmark: paired shifts with intervals, and a verdict for each group."""
        if metric not in list(Metric):
            raise ToolError(f"no metric {metric!r}: there are {', '.join(Metric)}")
        groups, began = labels_named(by), begun("since", since)
        return document(
            compare_stored(self._url, (before, after), by=groups, metric=Metric(metric), from_=began, to=until)
        )

    @one_line
    def catalogue(self) -> Document:
        """The questions that `ask` takes, with their parameters and columns."""
        return {
            query.name: {
                "question": query.question,
                "parameters": {one.name: f"{one.type}: {one.meaning}" for one in query.parameters},
                "columns": {one.name: f"[{one.unit}] {one.meaning}" for one in query.columns},
            }
            for query in load().values()
        }

    @one_line
    def ask(
        self,
        query: Annotated[str, Field(description="A name of the catalogue.")],
        parameters: Annotated[dict[str, str] | None, Field(description="Its parameters by name.")] = None,
        rows_max: RowsMax = 200,
    ) -> Document:
        """The answer to one question of the catalogue."""
        return rows_of(find(query).name, self._url, rows_max, dict(parameters or {}))

    @one_line
    def sql(
        self,
        statement: Annotated[str, Field(description="One statement that reads: SELECT, SHOW, DESCRIBE, EXPLAIN.")],
        rows_max: RowsMax = 200,
    ) -> Document:
        """The answer to one statement of ClickHouse's SQL; read-only, 30 s at most. The table is graph_executions."""
        answer = ask(self._url, statement, rows_max)
        return {
            "columns": [
                dict(zip(("name", "type"), pair, strict=True))
                for pair in zip(answer.columns, answer.types, strict=True)
            ],
            # JSON has no word for what is no number.
            "rows": json.loads(json.dumps(answer.rows, default=str), parse_constant=lambda _: None),
            "cut_off": answer.cut_off,
        }


def server(clickhouse_url: str) -> MCPServer[Any]:
    """The server; `run("stdio")` serves it."""
    tools = Tools(clickhouse_url)
    offered = (
        tools.cells,
        tools.postmortem,
        tools.findings,
        tools.replay,
        tools.compare,
        tools.catalogue,
        tools.ask,
        tools.sql,
    )
    return MCPServer(
        "tachograph",
        version=version("tachograph"),
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        tools=[strict(tool) for tool in offered],
    )


def strict(function: Callable[..., Any]) -> Tool:
    """A tool that refuses arguments it does not know: left out in silence, a filter would seem to hold."""
    tool = StrictTool.from_function(function, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool

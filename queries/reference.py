"""docs/queries.md, out of the catalogue: `python -m queries.reference > docs/queries.md`."""

import sys
from collections.abc import Iterator

from queries.catalogue import Column, Parameter, Query, load

INTRODUCTION = """\
# Queries

Generated from the heads of `queries/sql/*/*.sql` by `python -m queries.reference`; a test keeps it true.
What each figure means, by formula and clock, stands in [metrics.md](metrics.md).

    tachograph query                                     # what there is
    tachograph query stuck_plain --param from=-1h        # a table for the eye, times in ms
    tachograph query cells --format parquet -o cells.parquet

From Python: `queries.runner.run("cells", "http://127.0.0.1:8123/tachograph", "pandas", host="gpu-node-024")`.

Instants are ISO 8601 (UTC where no zone is named), `now`, or `-15m` for fifteen minutes ago (s, m, h, d).
A cell is named by `service_instance_id` and `cell` together. Exit codes of `tachograph query`: 0 answered
(an empty answer says so on standard error), 2 a wrong call, 3 no ClickHouse answers, 4 ClickHouse refused.

A new query is one file `queries/sql/<topic>/<name>.sql`; its head has one entry a line:

    -- question: TEXT
    -- uses: PART, PART                               (common table expressions of queries/sql/parts)
    -- plan: PART                                     (optional: what `plan` stands for in those parts)
    -- parameter NAME: TYPE = DEFAULT | MEANING       (bound by the server where the body has {NAME:TYPE})
    -- column NAME [UNIT] | MEANING                   (in the order of the result)
    -- table: COLUMN, COLUMN                          (what a terminal shows)
    -- example: COMMAND
"""


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(line for query in load().values() for line in section(query))])


def section(query: Query) -> Iterator[str]:
    """One query's part of the page."""
    yield f"## {query.name}\n"
    yield f"{query.question}\n"
    yield f"    {query.example}\n"
    yield "| parameter | type | default | meaning |\n| --- | --- | --- | --- |"
    yield from map(parameter_row, query.parameters)
    yield "\n| column | unit | meaning |\n| --- | --- | --- |"
    yield from map(column_row, query.columns)
    yield ""


def parameter_row(parameter: Parameter) -> str:
    """One parameter as a row."""
    default = f"`{parameter.default}`" if parameter.default else "''"
    return f"| `{parameter.name}` | {parameter.type} | {default} | {parameter.meaning} |"


def column_row(column: Column) -> str:
    """One column as a row."""
    return f"| `{column.name}` | {column.unit} | {column.meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())

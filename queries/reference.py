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

From Python, in one call each (`worked-post-mortem.md` shows them at work):

    from queries.runner import run, save
    url = "http://127.0.0.1:8123/tachograph"
    frame = run("cells", url, host="gpu-node-024")            # pandas
    table = run("cells", url, "arrow", last_s=86400)          # pyarrow
    save("cells", url, "cells.parquet", **{"from": "-1h"})    # or .csv, .jsonl; `from` is a word of Python's

Without `from`, a query looks at the half hour (`last_s`) up to the newest stored execution that its other parameters
leave, so that a record of last week is found as well as a running engine; where a `cell` or an `arm` is named, at all of
it. `last_s=0` is everything. A wider `from` takes longer in proportion to the executions in it, save for the queries over
cells, which read them only where something was wrong. `make bench-queries` measures each over 10 M stored executions.

Instants are ISO 8601 (UTC where no zone is named), `now`, or `-15m` for fifteen minutes ago (s, m, h, d).
A cell is named by `service_instance_id` and `cell` together. Exit codes of `tachograph query`: 0 answered
(an empty answer says so on standard error), 2 a wrong call, 3 no ClickHouse answers, 4 ClickHouse refused;
74, as of every command, standard output cannot be written.

A new query is one file `queries/sql/<topic>/<name>.sql`; its head has one entry a line:

    -- question: TEXT
    -- uses: PART, PART                               (common table expressions of queries/sql/parts)
    -- plan: PART                                     (optional: what `plan` stands for in those parts)
    -- parameter NAME: TYPE = DEFAULT | MEANING       (bound by the server where the body has {NAME:TYPE})
    -- column NAME [UNIT] | MEANING                   (in the order of the result)
    -- table: COLUMN, COLUMN                          (what a terminal shows)
    -- example: COMMAND

A row of `queries/sql/parts` may say what it is where parameters are given (`-- given NAME, not NAME: EXPRESSION`): the statement that is
sent then has the expression in its place, and nothing is read or planned for the row. A filter that is a line of its own,
`AND ({NAME:TYPE} = DEFAULT OR CONDITION)`, is not sent as long as the parameter has its default; the SQL that people are shown has it.
"""


TOPICS = {
    "live": "At a glance: what live pages ask",
    "cells": "Verdicts on cells",
    "estimates": "Estimates and decisions",
    "costs": "What graphs cost",
    "gpu": "GPU and host",
    "tokens": "Tokens",
    "executions": "Engines and executions",
    "history": "History",
    "delivery": "Losses and clocks",
    "alerts": "What alert rules ask",
    "annotations": "What people noted",
}
"""Headings of the topics, in their order; a topic that is missing here comes last, under its own name."""


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *contents(), *(line for topic in topics() for line in chapter(topic))])


def topics() -> list[str]:
    """The topics that there are, in order."""
    there = sorted({query.topic for query in load().values()})
    return [*(topic for topic in TOPICS if topic in there), *(topic for topic in there if topic not in TOPICS)]


def queries_of(topic: str) -> list[Query]:
    """The queries of a topic, in alphabetical order."""
    return [query for query in load().values() if query.topic == topic]


def contents() -> Iterator[str]:
    """Every question with a link to its section."""
    for topic in topics():
        yield f"**{TOPICS.get(topic, topic)}**\n"
        yield from (f"- [{query.name}](#{query.name}): {query.question}" for query in queries_of(topic))
        yield ""


def chapter(topic: str) -> Iterator[str]:
    """One topic's part of the page."""
    yield f"## {TOPICS.get(topic, topic)}\n"
    for query in queries_of(topic):
        yield from section(query)


def section(query: Query) -> Iterator[str]:
    """One query's part of the page."""
    yield f"### {query.name}\n"
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

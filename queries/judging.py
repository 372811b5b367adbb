"""The statement by which the collector judges cells, out of the catalogue: `python -m queries.judging > collector/judging/judge_cells.sql`.

Queries and collector do not import each other. What a verdict means is defined in the catalogue alone, so the collector's
statement is written from it, as docs/queries.md is, and a test holds the two together.
"""

from typing import Final

from queries.catalogue import PLACEHOLDER, Query, find
from queries.parameters import bound

QUERY: Final = "judgements"
BOUND_LATER: Final = ("from", "to")
"""What the collector says each time. Everything else has its default."""

HEAD: Final = """\
-- Judges the cells between `from` and `to` that have executions which their latest judgement does not count.
-- Written by `python -m queries.judging` from the query `judgements`: change that, not this.
-- Parameters: from, to.
"""


def statement() -> str:
    """The whole file."""
    query = find(QUERY)
    columns = ", ".join(column.name for column in query.columns)
    return f"{HEAD}INSERT INTO cell_windows ({columns})\n{with_defaults(query)}"


def with_defaults(query: Query) -> str:
    """The query with the defaults of its parameters written in, as literals of their types."""
    values = bound(query, {})

    def literal(name: str, type_: str) -> str:
        return values[name] if type_.startswith(("UInt", "Int", "Float")) else f"'{values[name]}'"

    return PLACEHOLDER.sub(
        lambda found: found[0] if found[1] in BOUND_LATER else literal(found[1], found[2]), query.sql
    )


if __name__ == "__main__":
    print(statement(), end="")  # noqa: T201

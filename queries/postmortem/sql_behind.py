"""The SQL behind a sentence: as a command to repeat, and in full."""

import shlex
from typing import NamedTuple

from queries.catalogue import find
from queries.findings.findings import QueryUse
from queries.parameters import bound
from queries.runner import given


class Sql(NamedTuple):
    """One query as it can be asked again."""

    command: str
    """`tachograph query …`."""
    sql: str
    """The text, with `{name:Type}` where the server binds a value."""
    values: dict[str, str]
    """What is bound."""


def sql_behind(use: QueryUse) -> Sql:
    """A query of a finding's evidence.

    Raises:
        UnknownQueryError, ParameterError: the evidence names what the catalogue does not have.
    """
    words = ["tachograph", "query", use.name]
    for name, value in use.parameters.items():
        words += ["--param", f"{name}={value}"]
    query = find(use.name)
    texts = bound(query, use.parameters)
    return Sql(shlex.join(words), query.sql_given(given(query, texts)), texts)

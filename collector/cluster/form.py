"""What each statement of the schema becomes on a cluster. docs/cluster.md has the rules and why.

- A table that keeps rows becomes two: `T_local`, replicated, on each shard; and `T`, distributed over them, so that
  everybody goes on reading and inserting into `T`.
- A table with the column `service_instance_id` is divided by it: all of an engine is on one shard. Where a view divides
  what was not divided before, the table it writes to becomes two as well, though it keeps nothing: rows go to their shard
  there, once, and everything after that happens on the shard.
- A view of what is divided reads and writes local parts only; any other writes to the distributed table.
- Whatever changes a table changes both of it.
- Every statement runs ON CLUSTER and names the database, because other hosts do not know the session's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from collector.cluster.statement import Statement, Word
from collector.errors import CollectorError

LOCAL: Final = "_local"
"""What the name of a shard's own part of a table ends with."""
DIVIDED_BY: Final = "service_instance_id"
"""The engine instance."""
REPLICA_PATH: Final = "/clickhouse/tables/{shard}/{database}/{table}"
"""Where the replicas of a shard meet in Keeper; ClickHouse fills in the macros."""
_WHOLE_PATH: Final = "/clickhouse/tables/all/{database}/{table}"
_MERGE_TREE: Final = re.compile(r"(?!Replicated|Shared)\w*MergeTree")
_NAMES_FOLLOW: Final = ("FROM", "JOIN", "IN", "TO")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ClusterFormError(CollectorError):
    """A statement whose form on a cluster is not known, or a name that cannot stand in one."""


class Table(NamedTuple):
    """A table of the schema."""

    name: str
    keeps_rows: bool
    shard_key: str
    """The column that says which shard a row belongs to; '' where rows are not divided."""
    is_entrance: bool = False
    """Rows are divided where they come in here."""

    @property
    def is_two(self) -> bool:
        """Whether it is a local table and a distributed one."""
        return self.keeps_rows or self.is_entrance

    @property
    def local_name(self) -> str:
        """What it is called on its shard."""
        return self.name + LOCAL if self.is_two else self.name


class ClusterForm:
    """Makes the cluster's statements of the schema's.

    Args:
        cluster: Its name in `remote_servers`.
        database: The database on every host.
        statements: The whole schema, so that it is known what its tables keep and how rows reach them.

    Raises:
        ClusterFormError: a name has something in it that no plain name has, or two views would write by one insert to
            one distributed table: its shards would take the second for a repetition of the first, and drop it.
    """

    def __init__(self, cluster: str, database: str, statements: Iterable[str]) -> None:
        for name in (cluster, database):
            if not _IDENTIFIER.fullmatch(name):
                raise ClusterFormError(f"{name!r} cannot be used as a name here: letters, digits and _ only")
        self.cluster = cluster
        self.database = database
        self._tables = _tables_of([Statement.of(text) for text in statements])

    def database_statement(self) -> str:
        """What makes the database on every host."""
        return f"CREATE DATABASE IF NOT EXISTS {self.database} ON CLUSTER '{self.cluster}'"

    def whole_on_every_host(self, text: str) -> str:
        """A small table that every host, of every shard, has all of."""
        statement = Statement.of(text)
        named = self._named(statement, local=False)
        return statement.replaced(named | _replicated(statement, _WHOLE_PATH, "{shard}_{replica}"))

    def of(self, text: str) -> list[str]:
        """The statements, in order, that do on a cluster what this one does on one host.

        Raises:
            ClusterFormError: it is none of those that the schema may have.
        """
        statement = Statement.of(text)
        if statement.begins("CREATE", "TABLE"):
            return list(self._creation(statement))
        if statement.begins("CREATE", "MATERIALIZED", "VIEW"):
            return [statement.replaced(self._named(statement, local=_is_divided(statement, self._tables)))]
        if statement.begins("CREATE", "VIEW"):
            return [statement.replaced(self._named(statement, local=False))]
        if statement.begins("ALTER", "TABLE") or statement.begins("DROP"):
            return list(self._change(statement))
        raise ClusterFormError(f"no form for a cluster is known of: {str(statement)[:60]!r}")

    def _creation(self, statement: Statement) -> Iterator[str]:
        name = _object_of(statement)
        table = self._tables[name.text]
        replicated = _replicated(statement, REPLICA_PATH, "{replica}") if table.keeps_rows else {}
        yield statement.replaced(self._named(statement, local=True) | replicated)
        if table.is_two:
            yield (
                f"CREATE TABLE IF NOT EXISTS {self.database}.{table.name} ON CLUSTER '{self.cluster}'"
                f" AS {self.database}.{table.local_name}\n"
                f"ENGINE = Distributed('{self.cluster}', '{self.database}', '{table.local_name}',"
                f" sipHash64({table.shard_key}))"
            )

    def _change(self, statement: Statement) -> Iterator[str]:
        """An alteration or a removal. A distributed table has columns, and nothing else that is altered."""
        table = self._tables.get(_object_of(statement).text)
        if statement.find("MODIFY", "QUERY") is not None:
            yield statement.replaced(self._named(statement, local=_is_divided(statement, self._tables)))
            return
        of_columns = statement.begins("DROP") or any(word.says("COLUMN") and not word.depth for word in statement.words)
        yield statement.replaced(self._named(statement, local=True))
        if table and table.is_two and of_columns:
            yield statement.replaced(self._named(statement, local=False))

    def _named(self, statement: Statement, *, local: bool) -> dict[int, str]:
        """Every object named with its database, tables by their local names or not; what it is about, on the cluster."""
        about = _object_of(statement)
        changes = {}
        for before, word in zip(statement.words, statement.words[1:], strict=False):
            table = self._tables.get(word.text)
            name = table.local_name if table and local else word.text
            if word is about:
                changes[word.place] = f"{self.database}.{name} ON CLUSTER '{self.cluster}'"
            elif table and before.says(*_NAMES_FOLLOW):
                changes[word.place] = f"{self.database}.{name}"
        return changes


def _replicated(statement: Statement, path: str, replica: str) -> dict[int, str]:
    """The engine and its settings, replicated."""
    changes = {}
    engine = statement.after("ENGINE", "=")
    for word, following in zip(statement.words, [*statement.words[1:], None], strict=True):
        if word is engine:
            has_arguments = following is not None and following.text == "("
            changes[word.place] = f"Replicated{word.text}('{path}', '{replica}'{'' if has_arguments else ')'}"
            if following and has_arguments:
                changes[following.place] = ", "
        elif word.says("NON_REPLICATED_DEDUPLICATION_WINDOW"):
            changes[word.place] = "replicated_deduplication_window"
    return changes


# ---- the schema as a whole


def _tables_of(statements: list[Statement]) -> dict[str, Table]:
    """Every table, and which of them are entrances."""
    tables = {table.name: table for statement in statements if (table := _table_of(statement))}
    entered: set[tuple[str, str]] = set()
    for statement in statements:
        if not statement.begins("CREATE", "MATERIALIZED", "VIEW") or _is_divided(statement, tables):
            continue
        source, target = _source_of(statement).text, _target_of(statement).text
        if (source, target) in entered:
            raise ClusterFormError(
                f"two views of {source} write to {target}: on a cluster, what the second writes is lost"
            )
        entered.add((source, target))
        if target in tables and tables[target].shard_key:
            tables[target] = tables[target]._replace(is_entrance=True)
    return tables


def _table_of(statement: Statement) -> Table | None:
    """The table that a statement makes; None where it makes none."""
    engine = statement.after("ENGINE", "=")
    if not statement.begins("CREATE", "TABLE") or engine is None:
        return None
    keeps_rows = bool(_MERGE_TREE.fullmatch(engine.text))
    columns = {word.text for word in statement.words if word.depth == 1}
    shard_key = DIVIDED_BY if DIVIDED_BY in columns else _ordered_by(statement) if keeps_rows else ""
    return Table(_object_of(statement).text, keeps_rows, shard_key)


def _ordered_by(statement: Statement) -> str:
    """The first column of the sorting key."""
    at = statement.find("ORDER", "BY")
    words = statement.words[at + 2 :] if at is not None else []
    first = next((word.text for word in words if word.text != "("), "")
    if not _IDENTIFIER.fullmatch(first):
        raise ClusterFormError(f"no column to divide a table by: {str(statement)[:60]!r}")
    return first


def _is_divided(view: Statement, tables: Mapping[str, Table]) -> bool:
    """Whether a view is given rows that are on the shard of their engine."""
    source = tables.get(_source_of(view).text)
    return source is not None and source.shard_key == DIVIDED_BY


def _object_of(statement: Statement) -> Word:
    """The name of what a statement makes, changes or removes."""
    kinds = ("TABLE", "VIEW", "MATERIALIZED", "IF", "NOT", "EXISTS")
    return next(word for word in statement.words[1:] if not word.says(*kinds))


def _source_of(statement: Statement) -> Word:
    """The table whose inserts a view follows: the first of its innermost FROM."""
    depth, start = 0, 0
    while (at := statement.find("FROM", depth=depth, start=start)) is not None and at + 1 < len(statement.words):
        following = statement.words[at + 1]
        if following.text != "(":
            return following
        depth, start = depth + 1, at + 2
    raise ClusterFormError(f"a view that reads from nothing: {str(statement)[:60]!r}")


def _target_of(statement: Statement) -> Word:
    target = statement.after("TO")
    if target is None:
        raise ClusterFormError(f"a view that writes to no table of its own file: {str(statement)[:60]!r}")
    return target

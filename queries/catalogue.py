"""The catalogue: every query of `sql/`, read from the heads of its files.

A query is `sql/<topic>/<name>.sql`, one question a file. A part is `sql/parts/<name>.sql`: a common
table expression that queries and other parts share, so that a verdict is defined once; or one row of
one value, which the server works out once, before it plans what to read. A head is the comment lines
that begin the file, one entry a line:

    -- question: TEXT                                  (a query; a part has `part: TEXT` or `row: TEXT`)
    -- uses: PART, PART                                (optional)
    -- given NAME, NAME: EXPRESSION                    (rows, optional: what the row is where these parameters are given)
    -- given NAME, not NAME, NAME: EXPRESSION          (the same, as long as those after `not` are not given)
    -- plan: PART                                      (queries only, optional: what `plan` stands for in their parts)
    -- parameter NAME: TYPE = DEFAULT | MEANING        ('' is the empty string)
    -- column NAME [UNIT] | MEANING                    (queries only, in the order of the result)
    -- table: COLUMN, COLUMN                           (queries only: what a terminal shows)
    -- example: COMMAND                                (queries only)

A query has the parameters of the parts that it uses. Values are bound by the server as `{name:Type}`.

A filter that a parameter may leave out is a line of its own, as long as nothing is to be filtered not sent:

        AND ({name:Type} = DEFAULT OR CONDITION)       (or WHERE; the default is '' or 0)
"""

import difflib
import functools
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from queries.errors import HeadError, UnknownQueryError

SQL_ROOT = Path(__file__).parent / "sql"
PARTS_FOLDER = "parts"

ENTRY = re.compile(r"-- (?P<kind>question|part|row|uses|plan|table|example): (?P<text>\S.*)")
PARAMETER = re.compile(r"-- parameter (?P<name>\w+): (?P<type>\S.*?) = (?P<default>.+?) \| (?P<meaning>\S.*)")
GIVEN = re.compile(r"-- given (?P<given>\w+(?:, \w+)*?)(?:, not (?P<absent>\w+(?:, \w+)*))?: (?P<expression>\S.*)")
COLUMN = re.compile(r"-- column (?P<name>\w+) \[(?P<unit>[^\]]*)\] \| (?P<meaning>\S.*)")
Value = TypeVar("Value")

PLACEHOLDER = re.compile(r"\{(\w+):([^}]+)\}")
FILTER = re.compile(
    r"(?P<before> *(?P<word>AND|WHERE) )\(\{(?P<name>\w+):[^}]+\} = (?P<none>''|0) OR (?P<condition>.*)\)"
)
LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'")


@dataclass(frozen=True)
class Parameter:
    """One value that the server binds."""

    name: str
    type: str
    """ClickHouse type."""
    default: str
    meaning: str


@dataclass(frozen=True)
class Column:
    """One column of a result."""

    name: str
    unit: str
    """'' for labels and verdicts, `time` for an instant."""
    meaning: str


@dataclass(frozen=True)
class Shortcut:
    """What a row is where certain parameters are given: the server then neither reads nor plans anything for it.

    The answer is the same. A row that is asked for where it stands in a long statement costs 5 to 15 ms of planning.
    """

    given: frozenset[str]
    absent: frozenset[str]
    expression: str

    def fits(self, given: Collection[str]) -> bool:
        """Whether it holds where these parameters are given."""
        return self.given <= {*given} and self.absent.isdisjoint(given)


@dataclass(frozen=True)
class Row:
    """A row as it stands in a statement, and what may stand there instead."""

    name: str
    standing: str
    shortcuts: tuple[Shortcut, ...]

    def shortest(self, given: Collection[str]) -> str:
        """What stands there where these parameters are given."""
        fitting = (one.expression for one in self.shortcuts if one.fits(given))
        return next((f"{expression} AS {self.name}" for expression in fitting), self.standing)


@dataclass(frozen=True)
class Query:
    """One question, ready to be asked."""

    name: str
    topic: str
    question: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    table: tuple[str, ...]
    example: str
    sql: str
    """With its parts, values still to be bound."""
    rows: tuple[Row, ...] = ()
    """Those in `sql` that have shortcuts."""

    def sql_given(self, names: Collection[str]) -> str:
        """The shortest statement that answers where these parameters are given, and the others have their defaults."""
        sql = self.sql
        for row in self.rows:
            sql = sql.replace(row.standing, row.shortest(names))
        return sql

    def sql_sent(self, names: Collection[str]) -> str:
        """The same without the filters that nobody asked for: up to 4 ms less to plan."""
        idle = {(one.name, one.default or "''") for one in self.parameters if one.name not in names}
        lines = (without_filter(line, idle) for line in self.sql_given(names).splitlines())
        return "\n".join(line for line in lines if line is not None) + "\n"


def without_filter(line: str, idle: Collection[tuple[str, str]]) -> str | None:
    """What is left of a line of SQL where these parameters have these defaults; None for nothing."""
    found = FILTER.fullmatch(line)
    if not found or (found["name"], found["none"]) not in idle or not is_closed(found["condition"]):
        return line
    return f"{found['before']}true" if found["word"] == "WHERE" else None


def is_closed(condition: str) -> bool:
    """Whether every bracket that it closes was opened in it, and the other way round."""
    depth = 0
    for character in LITERAL.sub("", condition):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


@dataclass(frozen=True)
class SqlFile:
    """One file: its head and its body."""

    path: Path
    entries: dict[str, str]
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    shortcuts: tuple[Shortcut, ...]
    body: str

    @property
    def uses(self) -> tuple[str, ...]:
        return names_in(self.entries.get("uses", ""))


def names_in(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def read_file(path: Path) -> SqlFile:
    """One file, its head parsed.

    Raises:
        HeadError: an entry that is malformed, unknown, missing or there twice; names file and line.
    """
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    head_length = next((number for number, line in enumerate(lines) if not line.startswith("--")), len(lines))
    head = Head({}, {}, {}, {})
    for number, line in enumerate(lines[:head_length], start=1):
        read_entry(line.rstrip("\n"), f"{path}:{number}", head)
    file = SqlFile(
        path,
        head.entries,
        tuple(head.parameters.values()),
        tuple(head.columns.values()),
        tuple(head.shortcuts.values()),
        "".join(lines[head_length:]),
    )
    check_head(file)
    return file


class Head(NamedTuple):
    """What the lines of a head say, by its names."""

    entries: dict[str, str]
    parameters: dict[str, Parameter]
    columns: dict[str, Column]
    shortcuts: dict[str, Shortcut]


def read_entry(line: str, place: str, head: Head) -> None:
    """Put one line of a head where it belongs."""
    if found := PARAMETER.fullmatch(line):
        default = "" if found["default"] == "''" else found["default"]
        add(head.parameters, found["name"], Parameter(found["name"], found["type"], default, found["meaning"]), place)
    elif found := COLUMN.fullmatch(line):
        add(head.columns, found["name"], Column(found["name"], found["unit"], found["meaning"]), place)
    elif found := GIVEN.fullmatch(line):
        given, absent = (frozenset(names_in(found[kind] or "")) for kind in ("given", "absent"))
        add(head.shortcuts, line.partition(":")[0], Shortcut(given, absent, found["expression"]), place)
    elif found := ENTRY.fullmatch(line):
        add(head.entries, found["kind"], found["text"], place)
    else:
        raise HeadError(f"{place}: not an entry of a query's head: {line!r}; docs/queries.md shows the format")


def add(entries: dict[str, Value], name: str, value: Value, place: str) -> None:
    """Add an entry that may stand there once."""
    if name in entries:
        raise HeadError(f"{place}: {name} stands there twice")
    entries[name] = value


def check_head(file: SqlFile) -> None:
    """Refuse a head that lacks an entry, or parameters that the body does not use."""
    is_part = file.path.parent.name == PARTS_FOLDER
    needed = ("row" if "row" in file.entries else "part",) if is_part else ("question", "table", "example")
    for kind in needed:
        if kind not in file.entries:
            raise HeadError(f"{file.path}:1: the head has no `-- {kind}: …`")
    if "question" in needed and not file.columns:
        raise HeadError(f"{file.path}:1: the head has no `-- column …`")
    names = {column.name for column in file.columns}
    for name in names_in(file.entries.get("table", "")):
        if name not in names:
            raise HeadError(f"{file.path}:1: `table` names {name}, which is no column")
    for parameter in file.parameters:
        if (parameter.name, parameter.type) not in PLACEHOLDER.findall(file.body):
            raise HeadError(f"{file.path}:1: the query never uses {{{parameter.name}:{parameter.type}}}")
    check_shortcuts(file)


def check_shortcuts(file: SqlFile) -> None:
    """Refuse one that is no row's, or that names what is no parameter."""
    if file.shortcuts and "row" not in file.entries:
        raise HeadError(f"{file.path}:1: `given` says what a row is, and this is none")
    types = {parameter.name: parameter.type for parameter in file.parameters}
    for shortcut in file.shortcuts:
        for name in (*shortcut.given, *shortcut.absent):
            if name not in types:
                raise HeadError(f"{file.path}:1: `given` names {name}, which is no parameter of the row")
        for name, type_ in PLACEHOLDER.findall(shortcut.expression):
            if types.get(name) != type_:
                raise HeadError(f"{file.path}:1: `given` has {{{name}:{type_}}}, which is no parameter of the row")


def parts_of(file: SqlFile, parts: dict[str, SqlFile], above: tuple[str, ...] = ()) -> dict[str, SqlFile]:
    """The parts that a file needs, each after those that it builds on."""
    needed: dict[str, SqlFile] = {}
    for name in file.uses:
        if name not in parts or name in above:
            raise HeadError(
                f"{file.path}:1: `uses` names {name}, which is " + ("itself" if name in above else "no part")
            )
        needed |= parts_of(parts[name], parts, (*above, name))
        needed[name] = parts[name]
    return needed


def parameters_of(files: list[SqlFile]) -> tuple[Parameter, ...]:
    """The parameters of all these files; one name has one meaning."""
    parameters: dict[str, Parameter] = {}
    for file in files:
        for parameter in file.parameters:
            if parameters.setdefault(parameter.name, parameter) != parameter:
                raise HeadError(f"{file.path}:1: parameter {parameter.name} differs from the one of another part")
    return tuple(parameters.values())


def named(name: str, part: SqlFile) -> str:
    """A part as it stands in `WITH`: a common table expression, or one value that is worked out once."""
    body = part.body.rstrip()
    return f"(\n{body}\n) AS {name}" if "row" in part.entries else f"{name} AS (\n{body}\n)"


def compose(file: SqlFile, parts: dict[str, SqlFile]) -> Query:
    """One query out of its file and the parts that it uses."""
    if plan := file.entries.get("plan"):
        if plan not in parts:
            raise HeadError(f"{file.path}:1: `plan` names {plan}, which is no part")
        parts = parts | {"plan": parts[plan]}
    needed = parts_of(file, parts)
    parameters = parameters_of([*needed.values(), file])
    standing = {name: named(name, part) for name, part in needed.items()}
    common = ",\n".join(standing.values())
    sql = f"WITH {common}\n{file.body}" if common else file.body
    declared = {(parameter.name, parameter.type) for parameter in parameters}
    for name, type_ in PLACEHOLDER.findall(sql):
        if (name, type_) not in declared:
            raise HeadError(f"{file.path}:1: {{{name}:{type_}}} has no `-- parameter {name}: {type_} = … | …`")
    return Query(
        name=file.path.stem,
        topic=file.path.parent.name,
        question=file.entries["question"],
        parameters=parameters,
        columns=file.columns,
        table=names_in(file.entries["table"]),
        example=file.entries["example"],
        sql=sql,
        rows=tuple(Row(name, standing[name], part.shortcuts) for name, part in needed.items() if part.shortcuts),
    )


@functools.lru_cache(maxsize=4)
def load(root: Path = SQL_ROOT) -> dict[str, Query]:
    """Every query by name, in alphabetical order.

    Raises:
        HeadError: a broken head; or one name in two topics.
    """
    files = sorted(root.glob("*/*.sql"))
    parts = {path.stem: read_file(path) for path in files if path.parent.name == PARTS_FOLDER}
    catalogue: dict[str, Query] = {}
    for path in files:
        if path.parent.name != PARTS_FOLDER:
            add(catalogue, path.stem, compose(read_file(path), parts), f"{path}:1")
    return dict(sorted(catalogue.items()))


def find(name: str, root: Path = SQL_ROOT) -> Query:
    """The query of that name.

    Raises:
        UnknownQueryError: there is none; names the closest.
    """
    catalogue = load(root)
    if name in catalogue:
        return catalogue[name]
    close = difflib.get_close_matches(name, catalogue, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(catalogue)}"
    raise UnknownQueryError(f"no query {name!r}: {hint}")

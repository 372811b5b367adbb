"""The heads of query files: read, refused with file and line, and kept true to their pages."""

import dataclasses
import re
from pathlib import Path

import pytest

from queries.catalogue import Query, find, load
from queries.errors import HeadError, UnknownQueryError
from queries.reference import page

ROOT = Path(__file__).parents[2]
GOOD = """\
-- question: How many?
-- parameter host: String = '' | One host.
-- column executions [executions] | How many.
-- table: executions
-- example: tachograph query many
SELECT count() AS executions FROM graph_executions WHERE host_name = {host:String}
"""


def write(root: Path, text: str, name: str = "topic/many.sql") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_head_is_read(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    query = load(tmp_path)["many"]
    assert (query.topic, query.question, query.table) == ("topic", "How many?", ("executions",))
    assert [(p.name, p.type, p.default, p.meaning) for p in query.parameters] == [("host", "String", "", "One host.")]
    assert [(c.name, c.unit, c.meaning) for c in query.columns] == [("executions", "executions", "How many.")]
    assert query.sql.startswith("SELECT count()")


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("-- question: How many?", "-- quest: How many?", 1, "not an entry"),
        ("-- question: How many?\n", "", 1, "no `-- question"),
        ("-- example: tachograph query many\n", "", 1, "no `-- example"),
        ("= '' | One host.", "| One host.", 2, "not an entry"),
        ("[executions] | How", "| How", 3, "not an entry"),
        ("-- table: executions", "-- table: hosts", 1, "`table` names hosts"),
        ("-- table: executions\n", "-- table: executions\n-- table: executions\n", 5, "twice"),
        ("WHERE host_name = {host:String}", "", 1, "never uses {host:String}"),
        ("{host:String}", "{host:String} = {arm:String}", 1, "{arm:String} has no"),
        ("-- question: How many?\n", "-- question: How many?\n-- uses: absent\n", 1, "`uses` names absent"),
        ("-- column executions [executions] | How many.\n", "", 1, "no `-- column"),
        ("-- question: How many?\n", "-- question: How many?\n-- plan: absent\n", 1, "`plan` names absent"),
    ],
)
def test_a_broken_head_names_file_and_line(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(HeadError, match=re.escape(f"{path}:{line}: ")) as refused:
        load(tmp_path)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_parts_come_before_what_uses_them_once(tmp_path: Path) -> None:
    write(tmp_path, "-- part: All.\nSELECT * FROM graph_executions\n", "parts/all.sql")
    write(tmp_path, "-- part: Few.\n-- uses: all\nSELECT * FROM all\n", "parts/few.sql")
    text = GOOD.replace("-- parameter", "-- uses: few, all\n-- parameter").replace("graph_executions", "few")
    write(tmp_path, text)
    sql = load(tmp_path)["many"].sql
    assert re.findall(r"(\w+) AS \(", sql) == ["all", "few"]


def test_a_query_says_what_its_parts_plan_by(tmp_path: Path) -> None:
    write(tmp_path, "-- row: Days.\nSELECT [1]\n", "parts/days.sql")
    write(
        tmp_path, "-- part: Few.\n-- uses: plan\nSELECT * FROM graph_executions WHERE has(plan, 1)\n", "parts/few.sql"
    )
    text = GOOD.replace("-- parameter", "-- uses: few\n-- plan: days\n-- parameter").replace("graph_executions", "few")
    write(tmp_path, text)
    assert load(tmp_path)["many"].sql.startswith("WITH (\nSELECT [1]\n) AS plan,\nfew AS (")


DAYS = "-- row: Days.\n-- given host: {host:String}\n-- parameter host: String = '' | One host.\nSELECT [1] WHERE {host:String} = ''\n"


def test_a_row_that_is_given_is_not_asked_for(tmp_path: Path) -> None:
    write(
        tmp_path,
        DAYS.replace("-- given host:", "-- given host, not arm: 1\n-- given host:")
        .replace("-- parameter", "-- parameter arm: String = '' | One arm.\n-- parameter", 1)
        .replace("= ''\n", "= {arm:String}\n"),
        "parts/days.sql",
    )
    write(tmp_path, GOOD.replace("-- parameter", "-- uses: days\n-- parameter"))
    query = load(tmp_path)["many"]
    assert query.sql_given([]) == query.sql_given(["arm"]) == query.sql
    assert query.sql_given(["host"]).startswith("WITH 1 AS days\nSELECT")
    assert query.sql_given(["arm", "host"]).startswith("WITH {host:String} AS days\nSELECT")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("-- row", "-- part", "`given` says what a row is"),
        ("-- given host", "-- given arm", "`given` names arm"),
        ("-- given host", "-- given host, not arm", "`given` names arm"),
        ("{host:String}\n-- par", "{arm:String}\n-- par", "{arm:String}, which is no parameter"),
        ("{host:String}\n-- par", "{host:UInt8}\n-- par", "{host:UInt8}, which is no parameter"),
        ("-- given host: {host:String}\n", "-- given host: 1\n-- given host: 2\n", "twice"),
    ],
)
def test_a_broken_shortcut_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in DAYS
    write(tmp_path, DAYS.replace(old, new), "parts/days.sql")
    write(tmp_path, GOOD.replace("-- parameter", "-- uses: days\n-- parameter"))
    with pytest.raises(HeadError, match=re.escape(says)):
        load(tmp_path)


FILTERS = """\
SELECT count() AS executions
FROM graph_executions
WHERE ({host:String} = '' OR host_name = {host:String})
    AND ({lanes:Int64} = 0 OR (batch_lanes = {lanes:Int64} AND batch_lanes != toInt64(')')))
"""


def written_with(root: Path, body: str) -> Query:
    """A query with one parameter of each kind that a filter may have."""
    lanes = "-- parameter lanes: Int64 = 0 | So many.\n-- parameter share: Float64 = 0.5 | Such a share.\n-- column"
    head = GOOD[: GOOD.index("SELECT")].replace("-- column", lanes)
    write(root, f"{head}{body}    AND {{host:String}} = {{lanes:Int64}} + {{share:Float64}}\n")
    return load(root)["many"]


def test_a_filter_that_nobody_asked_for_is_not_sent(tmp_path: Path) -> None:
    query = written_with(tmp_path, FILTERS)
    where, lanes, rest = query.sql.splitlines()[2:]
    assert query.sql_sent(["host", "lanes"]) == query.sql
    assert query.sql_sent([]).splitlines()[2:] == ["WHERE true", rest]
    assert query.sql_sent(["lanes"]).splitlines()[2:] == ["WHERE true", lanes, rest]
    assert query.sql_sent(["host"]).splitlines()[2:] == [where, rest]


@pytest.mark.parametrize(
    "line",
    [
        "    AND ({host:String} = '' OR host_name = {host:String}) AS is_asked",
        "    AND ({host:String} = '' OR host_name = {host:String}) AND (graph_sequence > 7)",
        "    AND ({host:String} = '' OR host_name = {host:String}) OR true",
        "    AND ({host:String} = '' OR host_name = {host:String}) -- )",
        "    AND ({host:String} = 'x' OR host_name = {host:String})",
        "    AND ({host:String} != '' OR host_name = {host:String})",
        "    AND ({lanes:Int64} = 1 OR batch_lanes = {lanes:Int64})",
        "    AND ({share:Float64} = 0 OR {share:Float64} > 7)",
        "    AND ({other:String} = '' OR host_name = {other:String})",
        "    AND (({host:String} = '' OR host_name = {host:String}))",
        "    AND {host:String} = '' OR host_name = {host:String}",
        "    OR ({host:String} = '' OR host_name = {host:String})",
        "    AND NOT ({host:String} = '' OR host_name = {host:String})",
    ],
)
def test_what_may_be_another_condition_is_sent_whole(tmp_path: Path, line: str) -> None:
    query = written_with(tmp_path, FILTERS)
    replaced = dataclasses.replace(query, sql=f"SELECT 1\nWHERE true\n{line}\n")
    assert replaced.sql_sent([]) == replaced.sql


def test_parts_that_use_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "-- part: One.\n-- uses: two\nSELECT 1\n", "parts/one.sql")
    write(tmp_path, "-- part: Two.\n-- uses: one\nSELECT 1\n", "parts/two.sql")
    write(tmp_path, GOOD.replace("-- parameter", "-- uses: one\n-- parameter"))
    with pytest.raises(HeadError, match="itself"):
        load(tmp_path)


def test_one_parameter_has_one_meaning(tmp_path: Path) -> None:
    write(tmp_path, "-- part: A.\n-- parameter host: String = 'x' | Other.\nSELECT {host:String}\n", "parts/a.sql")
    write(tmp_path, GOOD.replace("-- parameter", "-- uses: a\n-- parameter"))
    with pytest.raises(HeadError, match="parameter host differs"):
        load(tmp_path)


def test_an_unknown_query_names_the_closest() -> None:
    with pytest.raises(UnknownQueryError, match=r"did you mean .*stuck_plain"):
        find("stuck")
    with pytest.raises(UnknownQueryError, match="there are acceptance, alert_history, annotations"):
        find("zzz")


def test_the_reference_page_is_the_catalogues() -> None:
    written = (ROOT / "docs/queries.md").read_text()
    assert written == page(), "run: python -m queries.reference > docs/queries.md"


def metrics() -> dict[str, str]:
    """The unit of each derived figure, by docs/metrics.md."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\| .+ \| .+ \|$", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)
    assert len(rows) == len(dict(rows)), "one name has one meaning"
    return dict(rows)


def stored_columns() -> set[str]:
    schema = (ROOT / "collector/schema/010_graph_executions.sql").read_text()
    return set(re.findall(r"^    (\w+) [A-Z]\w+", schema, re.MULTILINE)) - {"cell", "INDEX"}


@pytest.mark.parametrize("query", load().values(), ids=lambda query: query.name)
def test_every_derived_column_is_defined_with_its_unit(query: Query) -> None:
    defined = metrics()
    derived = {column.name: column.unit for column in query.columns if column.name not in stored_columns()}
    # Not `started_at` of a cell, which is the stored column's earliest.
    assert derived == {name: defined.get(name) for name in derived}


def test_every_defined_figure_is_in_use() -> None:
    used = {column.name for query in load().values() for column in query.columns}
    parts = "".join(query.sql for query in load().values())
    assert {name for name in metrics() if name not in used and f"AS {name}" not in parts} == set()

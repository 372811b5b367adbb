"""Nothing that comes in through the endpoint changes or reaches anything but the store: two tables of statements."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from clickhouse_connect.driver.client import Client

from collector.sql_endpoint.server import serving_sql
from collector.store.clickhouse import connection_string
from tests.fixtures.databases import SERVER_URL

pytestmark = pytest.mark.skipif(bool(SERVER_URL), reason="the read-only endpoint is the embedded engine's alone")


class Watched(NamedTuple):
    """An endpoint over a database with one table of three rows, and what hostile statements aim at."""

    client: Client
    http: httpx.Client
    listener: socket.socket
    """Notices a connection that a statement makes."""
    secret: Path
    forbidden: Path
    """Exists as soon as a statement writes a file."""

    def state(self) -> tuple[object, ...]:
        """What no statement may change."""
        counts = self.client.query(
            "SELECT (SELECT (sum(x), count()) FROM watched.t), (SELECT count() FROM system.functions), "
            "(SELECT groupArray((database, name)) FROM system.tables WHERE database IN ('default', 'watched')), "
            "(SELECT groupArray(name) FROM system.databases)"
        )
        return (*counts.first_row, self.forbidden.exists())


@pytest.fixture(scope="module")
def watched(store: Client, data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    store.command("CREATE DATABASE watched")
    store.command("CREATE TABLE watched.t (x Int64) ENGINE = MergeTree ORDER BY x")
    store.insert("watched.t", [[1], [2], [3]])
    place = tmp_path_factory.mktemp("outside")
    (place / "secret").write_text("the secret")
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        serving_sql(connection_string(data_dir), "watched") as url,
        httpx.Client(base_url=url.rsplit("/", 1)[0]) as http,
    ):
        listener.setblocking(False)
        yield Watched(store, http, listener, place / "secret", place / "written")
    store.command("DROP DATABASE watched SYNC")


# {secret} is a file with something to read, {forbidden} one that must not come to be, {port} a port that listens.
HOSTILE = [
    "INSERT INTO t VALUES (4)",
    "INSERT INTO t SELECT * FROM t",
    "INSERT INTO t FROM INFILE '{secret}' FORMAT TSV",
    "INSERT INTO FUNCTION file('{forbidden}', 'TSV', 'x Int64') VALUES (1)",
    "DROP TABLE t",
    "DROP DATABASE watched",
    "TRUNCATE TABLE t",
    "ALTER TABLE t DELETE WHERE 1",
    "ALTER TABLE t MODIFY TTL toDateTime(x)",
    "DELETE FROM t WHERE 1",
    "RENAME TABLE t TO u",
    "OPTIMIZE TABLE t FINAL",
    "CREATE TABLE u (x Int64) ENGINE = Memory",
    "CREATE TEMPORARY TABLE u (x Int64)",
    "CREATE VIEW v AS SELECT 1",
    "CREATE FUNCTION f AS (x) -> x",
    "CREATE USER u",
    "GRANT ALL ON *.* TO default",
    "ATTACH TABLE t",
    "DETACH TABLE t",
    "BACKUP TABLE t TO File('{forbidden}')",
    "SYSTEM SHUTDOWN",
    "SYSTEM STOP MERGES",
    "KILL QUERY WHERE 1 SYNC",
    "KILL MUTATION WHERE 1",
    "USE system",
    "SET readonly = 0",
    "SET max_execution_time = 0",
    "SET ROLE NONE",
    "EXECUTE AS default SELECT 1",
    "BEGIN TRANSACTION",
    "SELECT 1; DROP TABLE t",
    "SELECT 1 PARALLEL WITH DROP TABLE t",
    "SELECT 1 INTO OUTFILE '{forbidden}'",
    "SELECT 1 /**/ INTO /**/ OUTFILE '{forbidden}' AND STDOUT",
    "SHOW TABLES INTO OUTFILE '{forbidden}'",
    "SELECT 1 SETTINGS readonly = 0",
    "SELECT 1 SETTINGS a.b = 1, readonly = 0",
    "SELECT * FROM (SELECT 1 SETTINGS max_execution_time = 0)",
    "SELECT 1 SETTINGS max_memory_usage = 0",
    "SELECT 1 SETTINGS format_schema = '{secret}'",
    "SELECT file('{secret}')",
    "SELECT FILE('{secret}')",
    "SELECT `file`('{secret}')",
    "SELECT \"file\"('{secret}')",
    "SELECT file /* x */ -- '\n ('{secret}')",
    "SELECT $$'$$, file('{secret}'), '1'",
    "SELECT '\\'', file('{secret}'), '1'",
    "SELECT /* /* */ ' */ file('{secret}') -- '",
    "SELECT COLUMNS('y') APPLY(file) FROM (SELECT '{secret}' AS y)",
    "SELECT COLUMNS('y') APPLY(y -> file(y)) FROM (SELECT '{secret}' AS y)",
    "SELECT arrayMap(y -> file(y), ['{secret}'])",
    "WITH (SELECT file('{secret}')) AS s SELECT s",
    "EXPLAIN SELECT file('{secret}')",
    "DESCRIBE (SELECT file('{secret}'))",
    "SELECT 1 FROM t WHERE x IN (SELECT length(file('{secret}')))",
    "SELECT * FROM file('{secret}', 'LineAsString')",
    "SELECT * FROM view(SELECT * FROM file('{secret}', 'LineAsString'))",
    "SELECT * FROM loop(file('{secret}', 'LineAsString'))",
    "SELECT * FROM eval('SELECT file(''{secret}'')')",
    "SELECT * FROM filesystem('{secret}')",
    "SELECT * FROM `{secret}`",
    "SELECT * FROM default.`{secret}`",
    "DESCRIBE TABLE file('{secret}', 'LineAsString')",
    "EXISTS TABLE default.`{secret}`",
    "SELECT * FROM sqlite('{forbidden}', 't')",
    "SELECT * FROM executable('id', 'TSV', 'x String')",
    "SELECT * FROM python(t)",
    "SELECT * FROM Python(t)",
    "SELECT * FROM url('http://127.0.0.1:{port}/', 'LineAsString')",
    "DESCRIBE TABLE url('http://127.0.0.1:{port}/')",
    "SELECT * FROM s3('http://127.0.0.1:{port}/bucket/key', 'TSV')",
    "SELECT * FROM remote('127.0.0.1:{port}', system.one)",
    "SELECT * FROM cluster('default', system.one)",
    "SELECT * FROM mysql('127.0.0.1:{port}', 'd', 't', 'u', 'p')",
    "SELECT * FROM postgresql('127.0.0.1:{port}', 'd', 't', 'u', 'p')",
    "SELECT * FROM mongodb('127.0.0.1:{port}', 'd', 'c', 'u', 'p', 'x Int64')",
    "SELECT * FROM redis('127.0.0.1:{port}', 'k', 'k String, v String')",
    "SELECT * FROM default.`http://127.0.0.1:{port}/a.csv`",
    "SELECT aiGenerate('http://127.0.0.1:{port}/')",
    "SELECT " + "(" * 20_000 + "1",
    "SELECT " + "[" * 20_000,
    "SELECT " + "-" * 50_000 + "1",
    "SELECT 1 SETTINGS readonly = DEFAULT",
    "SELECT 1 SETTINGS max_execution_time = DEFAULT",
    "SELECT 1 SETTINGS max_memory_usage = 'inf'",
    "SELECT 1 SETTINGS max_memory_usage = nan",
    "SELECT 1 SETTINGS max_threads = 1000",
    "SELECT 1 SETTINGS max_temporary_data_on_disk_size_for_query = 0",
    "SELECT 1 SETTINGS use_query_cache = 1",
    "SELECT 1 SETTINGS profile = 'default'",
    "SELECT 1 SETTINGS `readonly` = 0",
    "SELECT 1 AS x FORMAT Avro SETTINGS output_format_schema = '{forbidden}'",
    "SELECT 1 FORMAT Template",
    "SELECT * FROM format(CapnProto, 'x String', 'a') SETTINGS format_schema = '{secret}:X'",
    "DESCRIBE TABLE (SELECT 1) SETTINGS readonly = 0",
    "DESCRIBE t INTO OUTFILE '{forbidden}'",
    "SELECT 1 UNION ALL SELECT 2 INTO OUTFILE '{forbidden}' TRUNCATE",
    "(SELECT 1) INTO OUTFILE '{forbidden}'",
    "SHOW PROCESSLIST INTO OUTFILE '{forbidden}'",
    "SHOW TABLES WHERE length(file('{secret}')) > 0",
    "SELECT 1 QUALIFY file('{secret}') = 'a'",
    "SELECT x FROM t ORDER BY file('{secret}')",
    "SELECT x FROM t LIMIT length(file('{secret}'))",
    "SELECT * FROM t WHERE x IN file('{secret}')",
    "SELECT fi\\x6ce('{secret}')",
    "SELECT `fi\\x6ce`('{secret}')",
    "WITH file AS f SELECT f('{secret}')",
    "SELECT * FROM t JOIN url('http://127.0.0.1:{port}/', 'LineAsString') AS u ON 1 = 1",
    "WITH u AS (SELECT * FROM url('http://127.0.0.1:{port}/', 'LineAsString')) SELECT * FROM u",
    "EXPLAIN PLAN SELECT * FROM url('http://127.0.0.1:{port}/', 'LineAsString')",
    "EXPLAIN QUERY TREE SELECT * FROM url('http://127.0.0.1:{port}/')",
    "EXPLAIN TABLE OVERRIDE mysql('127.0.0.1:{port}', 'd', 't', 'u', 'p') PARTITION BY x",
    "SELECT * FROM viewIfPermitted(SELECT * FROM file('{secret}', 'LineAsString') ELSE null('x String'))",
    "SELECT * FROM remoteSecure('127.0.0.1:{port}', system.one)",
    "SELECT * FROM urlCluster('default', 'http://127.0.0.1:{port}/')",
    "SELECT * FROM fileCluster('default', '{secret}')",
    "SELECT * FROM iceberg('http://127.0.0.1:{port}/x')",
    "SELECT * FROM deltaLakeLocal('{secret}')",
    "SELECT * FROM hdfs('hdfs://127.0.0.1:{port}/x', 'TSV', 'x String')",
    "SELECT * FROM input('x Int64')",
    "SELECT * FROM dictionary('x')",
    "INSERT INTO FUNCTION url('http://127.0.0.1:{port}/', 'TSV', 'x Int8') VALUES (1)",
    "RESTORE TABLE t FROM File('{secret}')",
    "COPY t TO '{forbidden}'",
    "SYSTEM RELOAD CONFIG",
    "UPDATE t SET x = 1 WHERE 1",
    "EXCHANGE TABLES t AND u",
    "WATCH t",
    "COMMIT",
    "SELECT * FROM system.stack_trace",
    "SELECT * FROM system.symbols",
    "SELECT * FROM system.jemalloc_profile_text",
    "SELECT * FROM {d:Identifier}.{t:Identifier}",
    "SELECT * FROM system.`stack_trace`",
    "SELECT count() FROM merge('system', 'stack')",
    "SELECT count() FROM merge(REGEXP('s.stem'), 'stack')",
    "SELECT count() FROM `merge`(system, 'stack')",
    "SELECT count() FROM merge('SYSTEM', 'stack')",
    "SELECT count() FROM merge(lower('SYSTEM'), 'stack')",
    "SELECT count() FROM merge(concat('sys', 'tem'), 'stack')",
    "SELECT getMacro('x')",
    "SELECT getClientHTTPHeader('authorization')",
    "SELECT catboostEvaluate('{secret}', 1)",
    "SELECT logTrace('x')",
    "SELECT showCertificate()",
    "",
    "/* nothing */",
]
# Refused is not the only harmless answer: these say "no such table".
ANSWERED_WITHOUT_EFFECT = {"EXISTS TABLE default.`{secret}`"}


@pytest.mark.parametrize("statement", HOSTILE, ids=lambda text: text[:50])
@pytest.mark.parametrize("verb", ["POST", "GET"])
def test_hostile_statements_are_refused_without_effect(watched: Watched, statement: str, verb: str) -> None:
    before = watched.state()
    port = str(watched.listener.getsockname()[1])
    sql = statement.replace("{port}", port).replace("{secret}", str(watched.secret))
    sql = sql.replace("{forbidden}", str(watched.forbidden))
    answer = watched.http.post("/", content=sql) if verb == "POST" else watched.http.get("/", params={"query": sql})
    if statement not in ANSWERED_WITHOUT_EFFECT:
        assert answer.status_code >= 400, answer.text
        assert answer.headers["x-clickhouse-exception-code"] in answer.text
        assert answer.text.startswith("Code: ")
    assert "the secret" not in answer.text
    assert watched.state() == before
    with pytest.raises(BlockingIOError):
        watched.listener.accept()


@pytest.mark.parametrize(
    "parameters",
    [
        {"readonly": "0"},
        {"max_parser_depth": "100000000", "query": "SELECT " + "(" * 20_000 + "1"},
        {"max_ast_depth": "100000000", "query": "SELECT " + "-" * 50_000 + "1"},
        {"use_uncompressed_cache": "1"},
        {"query": "SELECT * FROM system.{x:Identifier}", "param_x": "stack_trace"},
        {"query": "SELECT * FROM stack_trace", "database": "system"},
        {"query": "SELECT * FROM merge({x:String}, 'stack')", "param_x": "system"},
        {"query": "SELECT * FROM merge('stack')", "database": "system"},
        {"max_execution_time": "0"},
        {"max_execution_time": "1000"},
        {"max_memory_usage": "1000000000000"},
        {"format_schema": "/etc/passwd"},
        {"format_template_resultset": "/etc/passwd"},
        {"allow_introspection_functions": "1"},
        {"allow_ddl": "1"},
        {"profile": "default"},
        {"role": "admin"},
        {"bad name": "1"},
        {"max_block_size": "1', readonly = '0"},
        {"user": "somebody"},
        {"password": "wrong"},
        {"database": "no_such"},
        {"database": "`x`; DROP TABLE t"},
        {"session_id": "s", "session_check": "1"},
        {"decompress": "1"},
        {"default_format": "DataFrame"},
        {"query_id": "a\r\nX-Injected: 1"},
        {"param_x": "1", "query": "SELECT {x:Identifier} FROM {y:Identifier}"},
    ],
    ids=str,
)
def test_hostile_parameters_are_refused(watched: Watched, parameters: dict[str, str]) -> None:
    before = watched.state()
    answer = watched.http.get("/", params={"query": "SELECT * FROM t", **parameters})
    assert answer.status_code >= 400
    assert answer.text.startswith("Code: ")
    assert "x-injected" not in answer.headers
    assert watched.state() == before


@pytest.mark.parametrize("path", ["{secret}", "http://127.0.0.1:{port}/a.csv"])
def test_a_parameter_names_no_file(watched: Watched, path: str) -> None:
    path = path.replace("{secret}", str(watched.secret)).replace("{port}", str(watched.listener.getsockname()[1]))
    parameters = {"query": "SELECT * FROM {d:Identifier}.{f:Identifier}", "param_d": "default", "param_f": path}
    answer = watched.http.get("/", params=parameters)
    assert answer.status_code == 403
    with pytest.raises(BlockingIOError):
        watched.listener.accept()


def test_a_statement_that_was_let_through_before_is_judged_by_its_parameters_anew(watched: Watched) -> None:
    def status(table: str) -> int:
        query = "SELECT count() FROM system.{x:Identifier}"
        return watched.http.get("/", params={"query": query, "param_x": table}).status_code

    assert [status(table) for table in ("tables", "stack_trace", "tables", "symbols")] == [200, 403, 200, 403]


def test_a_statement_that_was_let_through_before_is_judged_by_its_database_anew(watched: Watched) -> None:
    def status(database: str) -> int:
        query = "SELECT count() FROM merge(currentDatabase(), '^t$')"
        return watched.http.get("/", params={"query": query, "database": database}).status_code

    assert [status(database) for database in ("watched", "system", "watched", "system")] == [200, 500, 200, 500]


def test_no_system_table_shows_the_environment(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACHOGRAPH_SQL_PASSWORD", "the password in the environment")
    names = watched.http.get("/", params={"query": "SELECT name FROM system.tables WHERE database = 'system'"}).text
    answered = set()
    for name in names.split():
        answer = watched.http.get("/", params={"query": f"SELECT * FROM system.{name} LIMIT 10000"})  # noqa: S608
        assert "the password in the environment" not in answer.text
        answered |= {name} if answer.status_code == 200 else set()
    assert {"tables", "columns", "settings", "functions", "processes"} <= answered
    assert answered & {"stack_trace", "symbols", "certificates", "named_collections"} == set()


def test_one_query_leaves_nothing_to_the_next(watched: Watched) -> None:
    watched.http.get("/", params={"query": "SELECT 1", "max_block_size": "17", "database": "system", "readonly": "1"})
    answer = watched.http.get("/", params={"query": "SELECT getSetting('max_block_size'), currentDatabase()"})
    assert answer.text == "65409\twatched\n"


HARMLESS = [
    ("SELECT 1", "1\n"),
    ("SELECT 1;", "1\n"),
    ("-- why\nSELECT 1 -- because", "1\n"),
    ("/* driver */ SELECT 1 /* end */", "1\n"),
    ("SELECT version(), timezone()", None),
    ("SELECT name, value, readonly FROM system.settings LIMIT 10000", None),
    ("SELECT currentDatabase()", "watched\n"),
    ("SHOW TABLES", "t\n"),
    ("SHOW DATABASES", None),
    ("SHOW CREATE TABLE t", None),
    ("SHOW COLUMNS FROM t", None),
    ("DESCRIBE TABLE t", "x\tInt64\t\t\t\t\t\n"),
    ("DESC t", None),
    ("EXISTS TABLE t", "1\n"),
    ("EXPLAIN SELECT * FROM t", None),
    ("EXPLAIN indexes = 1 SELECT * FROM t WHERE x = 1", None),
    ("EXPLAIN AST SELECT 1", None),
    ("SELECT sum(x) FROM t", "6\n"),
    ("FROM t SELECT max(x)", "3\n"),
    ("WITH 2 AS two SELECT x FROM t WHERE x > two", "3\n"),
    ("SELECT x FROM t ORDER BY x LIMIT 1 BY x LIMIT 2 OFFSET 1", "2\n3\n"),
    ("(SELECT 1) UNION ALL (SELECT 1)", "1\n1\n"),
    ("SELECT x % 2 AS odd, count() FROM t GROUP BY odd WITH TOTALS ORDER BY odd", "0\t1\n1\t2\n\n0\t3\n"),
    ("SELECT a.x FROM t AS a JOIN t AS b ON a.x = b.x + 2", "3\n"),
    ("SELECT x, row_number() OVER (ORDER BY x DESC) FROM t ORDER BY x LIMIT 1", "1\t3\n"),
    ("SELECT arrayMap(y -> y + 1, [1, 2])", "[2,3]\n"),
    ("SELECT COLUMNS('x') APPLY(toString) FROM t LIMIT 1", "1\n"),
    ("SELECT * FROM numbers(3) WHERE number > 1", "2\n"),
    ("SELECT * FROM values('a UInt8', 1, 2) ORDER BY a", "1\n2\n"),
    ("SELECT count() FROM merge('watched', '^t$')", "3\n"),
    ("SELECT * FROM view(SELECT 5)", "5\n"),
    ("SELECT 'file(''x'')', `x` AS `url(` FROM t LIMIT 1", "file(\\'x\\')\t1\n"),
    ("SELECT 'it''s; DROP TABLE t'", "it\\'s; DROP TABLE t\n"),
    ("SELECT $$SET readonly = 0$$", "SET readonly = 0\n"),
    ("SELECT 1 AS file, 2 AS settings, 3 AS outfile", "1\t2\t3\n"),
    ("SELECT x FROM t WHERE x = 1 SETTINGS max_threads = 1, max_block_size = 10", "1\n"),
    ("SELECT * FROM (SELECT x FROM t SETTINGS max_execution_time = 5) ORDER BY x LIMIT 1", "1\n"),
    ("SELECT 1 AS a FORMAT JSONEachRow", '{"a":1}\n'),
    ("SELECT 1 AS a FORMAT CSVWithNames", '"a"\n1\n'),
    ("SELECT x FROM t ORDER BY x FORMAT Values", "(1),(2),(3)"),
    ("SELECT 1 WHERE 0", ""),
    ("SELECT count() FROM system.parts WHERE active AND database = 'watched'", "1\n"),
    ("SELECT 'Grüße 🙂'", "Grüße 🙂\n"),
    ("CHECK GRANT SELECT ON t", "1\n"),
    ("SHOW PROCESSLIST", None),
    ("SELECT 1 FORMAT Null", ""),
    ("SHOW SETTINGS LIKE 'readonly'", "readonly\tUInt64\t2\n"),
    ("SHOW INDEX FROM t", None),
    ("SHOW FUNCTIONS LIKE 'sum'", None),
    ("SHOW GRANTS", None),
    ("SELECT * FROM information_schema.tables LIMIT 1", None),
    ("EXPLAIN PIPELINE SELECT * FROM t", None),
    ("EXPLAIN ESTIMATE SELECT * FROM t", "watched\tt\t1\t3\t1\n"),
    ("SELECT count() FROM merge('^t$')", "3\n"),
    ("SELECT count() FROM merge(watched, '^t$')", "3\n"),
    ("SELECT count() FROM merge(currentDatabase(), '^t$')", "3\n"),
    ("SELECT currentUser(), hostName(), getSetting('readonly')", None),
]


@pytest.mark.parametrize(("statement", "expected"), HARMLESS, ids=lambda text: str(text)[:50])
def test_harmless_statements_are_answered(watched: Watched, statement: str, expected: str | None) -> None:
    answer = watched.http.post("/", content=statement)
    assert answer.status_code == 200, answer.text
    if expected is not None:
        assert answer.text == expected

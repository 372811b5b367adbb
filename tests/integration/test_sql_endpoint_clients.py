"""Real clients at the endpoint: clickhouse-connect from another process, curl's way, and clients that misbehave."""

import gzip
import http.client
import json
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import clickhouse_connect
import httpx
import lz4.block
import lz4.frame
import pytest
from backports import zstd
from clickhouse_cityhash.cityhash import CityHash128
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

from collector.ports import PortTakenError
from collector.sql_endpoint.limits import QueryLimits
from collector.sql_endpoint.server import serving_sql
from collector.store.clickhouse import connection_string
from tests.fixtures.databases import SERVER_URL

pytestmark = pytest.mark.skipif(bool(SERVER_URL), reason="the endpoint is the embedded engine's alone")

# Ends by its limit only.
ENDLESS = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"
IMPATIENT = QueryLimits(queries_at_once=2, wait_s=0.2, send_s=0.3, execution_time_s=20, request_bytes=10_000)


@pytest.fixture(scope="module")
def url(store: Client, data_dir: Path) -> Iterator[str]:
    with serving_sql(connection_string(data_dir), str(store.database)) as served:
        yield served


@pytest.fixture
def impatient_url(store: Client, data_dir: Path) -> Iterator[str]:
    with serving_sql(connection_string(data_dir), str(store.database), limits=IMPATIENT) as served:
        yield served


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with clickhouse_connect.get_client(dsn=url) as connected:
        yield connected


def root(url: str) -> str:
    return url.rsplit("/", 1)[0] + "/"


def ask(url: str, sql: str, **parameters: str) -> httpx.Response:
    return httpx.post(root(url), content=sql, params=parameters, timeout=30)


def eventually(holds: Callable[[], bool], within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.01)


IN_ANOTHER_PROCESS = """
import sys, json, clickhouse_connect
client = clickhouse_connect.get_client(dsn=sys.argv[1])
frame = client.query_df("SELECT number AS n, toString(number) AS s FROM numbers(100000)")
arrow = client.query_arrow("SELECT number AS n FROM numbers(100000)")
with client.query_row_block_stream("SELECT number FROM numbers(300000)") as blocks:
    streamed = sum(len(block) for block in blocks)
with client.query_df_stream("SELECT number AS n FROM numbers(300000)") as frames:
    summed = int(sum(frame["n"].sum() for frame in frames))
print(json.dumps([frame.shape, int(frame["n"].sum()), arrow.num_rows, streamed, summed, client.database]))
"""


def test_the_stock_client_reads_from_another_process(clickhouse_url: str, clickhouse: Client) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, clickhouse_url],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    rows = [[100000, 2], 4999950000, 100000, 300000, 44999850000, clickhouse.database]
    assert json.loads(done.stdout) == rows


def test_values_are_bound_by_the_engine(client: Client) -> None:
    values = {"i": -5, "s": "it's\ta\n\\ {x} Grüße", "a": ["a'b", "c"], "n": None, "f": 1.5}
    result = client.query(
        "SELECT {i:Int32}, {s:String}, {a:Array(String)}, {n:Nullable(Int8)}, {f:Float64}", parameters=values
    )
    assert result.first_row == (-5, values["s"], values["a"], None, 1.5)


def test_parameters_too_long_for_a_url_come_as_a_form(client: Client) -> None:
    long = "x" * 100_000
    assert client.query("SELECT length({s:String})", parameters={"s": long}).first_row == (100_000,)
    with clickhouse_connect.get_client(dsn=str(client.uri), form_encode_query_params=True) as encoding:
        assert encoding.query("SELECT {s:String}", parameters={"s": "a\tb"}).first_row == ("a\tb",)


def test_settings_of_a_client_reach_the_query(client: Client) -> None:
    sql = "SELECT toUInt64(getSetting('max_block_size'))"
    assert client.query(sql, settings={"max_block_size": 1234}).first_row == (1234,)
    with pytest.raises(DatabaseError) as refused:
        client.query(sql, settings={"max_execution_time": 10_000})
    assert refused.value.code == 452


def test_a_client_learns_code_and_name_of_an_error(client: Client) -> None:
    with pytest.raises(DatabaseError) as failed:
        client.query("SELECT * FROM no_such_table")
    assert (failed.value.code, failed.value.name) == (60, "UNKNOWN_TABLE")
    assert client.query("SELECT 1").first_row == (1,)


def test_a_failure_after_the_answer_began_reaches_the_client(client: Client) -> None:
    with (
        pytest.raises(StreamFailureError, match="non-zero"),
        client.query_row_block_stream("SELECT throwIf(number = 3000000) FROM numbers(4000000)") as blocks,
    ):
        for _ in blocks:
            pass


def test_a_summary_counts_what_was_read(client: Client) -> None:
    summary = client.query("SELECT sum(number) FROM numbers(1000)").summary
    assert (summary["read_rows"], summary["result_rows"]) == ("1000", "1")
    assert int(summary["elapsed_ns"]) > 0


@pytest.mark.parametrize("compress", [False, "gzip", "lz4", "zstd", "deflate"])
def test_answers_are_compressed_as_asked(url: str, compress: bool | str) -> None:
    with clickhouse_connect.get_client(dsn=url, compress=compress) as client:
        assert client.query("SELECT sum(number), count() FROM numbers(10)").first_row == (45, 10)
        assert len(client.query("SELECT number FROM numbers(200000)").result_rows) == 200_000


@pytest.mark.parametrize(
    ("encoding", "compressed"),
    [("gzip", gzip.compress), ("lz4", lz4.frame.compress), ("zstd", zstd.compress)],
)
def test_questions_may_be_compressed(url: str, encoding: str, compressed: Callable[[bytes], bytes]) -> None:
    answer = httpx.post(root(url), content=compressed(b"SELECT 5"), headers={"Content-Encoding": encoding})
    assert answer.text == "5\n"


def blocks_of(body: bytes) -> bytes:
    """ClickHouse's own blocks, unpacked and checked."""
    plain = b""
    while body:
        low, high, method, packed, size = struct.unpack_from("<QQBII", body)
        assert CityHash128(body[16 : 16 + packed]) == low << 64 | high
        assert method == 0x82
        plain += lz4.block.decompress(body[25 : 16 + packed], uncompressed_size=size)
        body = body[16 + packed :]
    return plain


def test_clickhouses_own_blocks(url: str) -> None:
    """What its JDBC driver asks for unless told otherwise."""
    headers = {"X-ClickHouse-Format": "RowBinaryWithNamesAndTypes", "Accept-Encoding": "gzip"}
    answer = httpx.post(root(url), content="SELECT 'é' AS a", params={"compress": "1"}, headers=headers)
    assert "content-encoding" not in answer.headers
    assert blocks_of(answer.content) == b"\x01\x01a\x06String\x02\xc3\xa9"
    long = ask(url, "SELECT number FROM numbers(500000)", compress="1")
    assert blocks_of(long.content) == "".join(f"{n}\n" for n in range(500_000)).encode()
    failed = ask(url, "SELECT nothing", compress="1")
    assert failed.text.startswith("Code: 47. DB::Exception: ")


def test_curl_labels_a_statement_a_form(url: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = httpx.post(root(url), content="SELECT 'a=b&c=%41'", headers=headers)
    assert answer.text == "a=b&c=%41\n"


def test_the_statement_is_the_parameter_and_the_body(url: str) -> None:
    assert httpx.get(root(url), params={"query": "SELECT 1"}).text == "1\n"
    assert httpx.post(root(url), params={"query": "SELECT 1 +"}, content="1").text == "2\n"


def test_headers_of_an_answer(url: str) -> None:
    answer = ask(url, "SELECT 1 AS a", query_id="mine", default_format="JSONEachRow")
    assert answer.text == '{"a":1}\n'
    told = {name: answer.headers[f"x-clickhouse-{name}"] for name in ("query-id", "format")}
    assert told == {"query-id": "mine", "format": "JSONEachRow"}
    assert json.loads(answer.headers["x-clickhouse-summary"])["read_rows"] == "1"
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    by_header = httpx.post(root(url), content="SELECT 1 AS a", headers={"X-ClickHouse-Format": "CSVWithNames"})
    assert by_header.text == '"a"\n1\n'


def test_ping(url: str) -> None:
    assert httpx.get(root(url) + "ping").text == "Ok.\n"


@pytest.mark.parametrize(
    ("sql", "status", "code"),
    [
        ("SELECT", 400, 62),
        ("SELECT * FROM nowhere", 404, 60),
        ("SELECT nothing", 404, 47),
        ("SELECT throwIf(1)", 500, 395),
        ("DROP TABLE x", 500, 164),
        ("SELECT 1 FORMAT Nonsense", 404, 73),
        ("SELECT {x:UInt8}", 500, 456),
        ("SELECT repeat('x', 10000000000)", 500, None),
    ],
)
def test_an_error_has_the_status_and_code_of_clickhouse(url: str, sql: str, status: int, code: int | None) -> None:
    answer = ask(url, sql)
    assert answer.status_code == status
    assert answer.text.endswith(f"(version {ask(url, 'SELECT version()').text.strip()})\n")
    if code is not None:
        assert answer.headers["x-clickhouse-exception-code"] == str(code)


def test_only_the_user_without_a_password_is_known(url: str) -> None:
    assert httpx.get(root(url), params={"query": "SELECT 1"}, auth=("default", "")).text == "1\n"
    for refused in (
        httpx.get(root(url), params={"query": "SELECT 1"}, auth=("admin", "")),
        httpx.get(root(url), params={"query": "SELECT 1"}, auth=("default", "x")),
        httpx.get(root(url), params={"query": "SELECT 1"}, headers={"X-ClickHouse-Key": "x"}),
        httpx.get(root(url), params={"query": "SELECT 1"}, headers={"Authorization": "Basic §".encode()}),
    ):
        assert (refused.status_code, refused.headers["x-clickhouse-exception-code"]) == (403, "516")


def test_time_memory_and_size_are_bounded(impatient_url: str) -> None:
    slow = ask(impatient_url, ENDLESS, max_execution_time="0.2")
    assert (slow.status_code, slow.headers["x-clickhouse-exception-code"]) == (408, "159")
    large = ask(impatient_url, "SELECT groupArray(number) FROM numbers(1000000000)")
    assert large.headers["x-clickhouse-exception-code"] == "241"
    long = ask(impatient_url, "SELECT number FROM numbers(10000000) FORMAT JSON")
    assert long.headers["x-clickhouse-exception-code"] == "396"
    question = ask(impatient_url, "SELECT 1 --" + "x" * 20_000)
    assert (question.status_code, question.headers["x-clickhouse-exception-code"]) == (413, "229")


def send_raw(url: str, sql: str) -> socket.socket:
    """Ask, and leave the answer unread."""
    connection = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))
    body = sql.encode()
    connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    return connection


def running(store: Client) -> int:
    count = store.query(
        "SELECT count() FROM system.processes WHERE query LIKE '/* %' AND query NOT ILIKE '%processes%'"
    )
    return int(count.first_row[0])


def test_a_streamed_result_has_an_end(store: Client, data_dir: Path) -> None:
    limits = QueryLimits(streamed_bytes=5_000_000)
    with serving_sql(connection_string(data_dir), str(store.database), limits=limits) as url:
        whole = ask(url, "SELECT number FROM numbers(500000)")
        assert len(whole.text.splitlines()) == 500_000
        cut = ask(url, "SELECT number FROM numbers(100000000)")
        assert "Code: 396. DB::Exception: Limit for result exceeded" in cut.text[-1000:]
        assert len(cut.content) < 10_000_000


def test_what_spills_to_disk_is_bounded(store: Client, data_dir: Path) -> None:
    limits = QueryLimits(spilled_bytes=1_000_000)
    group = "SELECT sipHash64(number) AS h, count() FROM numbers(1000000) GROUP BY h FORMAT Null"
    with serving_sql(connection_string(data_dir), str(store.database), limits=limits) as url:
        refused = ask(url, group, max_bytes_before_external_group_by="1000000")
        assert "TOO_MANY_ROWS_OR_BYTES" in refused.text
        assert ask(url, group).status_code == 200


def test_a_question_that_does_not_arrive_is_given_up(store: Client, data_dir: Path) -> None:
    with serving_sql(connection_string(data_dir), str(store.database), limits=QueryLimits(body_s=0.3)) as url:
        with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as slow:
            slow.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nSELECT")
            slow.settimeout(10)
            said = b""
            while not said.endswith(b")\n"):
                said += slow.recv(65536)
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"Code: 209. DB::Exception: " in said
        assert ask(url, "SELECT 1").text == "1\n"


def test_too_many_queries_wait_and_are_then_refused(impatient_url: str, store: Client) -> None:
    held = [send_raw(impatient_url, ENDLESS) for _ in range(2)]
    eventually(lambda: running(store) == 2)
    refused = ask(impatient_url, "SELECT 1")
    assert (refused.status_code, refused.headers["x-clickhouse-exception-code"]) == (503, "202")
    for connection in held:
        connection.close()
    eventually(lambda: running(store) == 0)
    assert ask(impatient_url, "SELECT 1").text == "1\n"


@pytest.mark.parametrize("sql", [ENDLESS, "SELECT number FROM numbers(100000000000)"])
def test_a_query_ends_with_its_client(impatient_url: str, store: Client, sql: str) -> None:
    for _ in range(4):
        connection = send_raw(impatient_url, sql)
        eventually(lambda: running(store) >= 1)
        connection.close()
    # Its own limit would end it after 20 s.
    eventually(lambda: running(store) == 0, within_s=15)
    assert ask(impatient_url, "SELECT 1").text == "1\n"


def test_a_client_that_reads_nothing_is_cut_off(impatient_url: str, store: Client) -> None:
    stalled = [send_raw(impatient_url, "SELECT number FROM numbers(100000000000)") for _ in range(2)]
    eventually(lambda: running(store) == 2)
    eventually(lambda: running(store) == 0)
    assert ask(impatient_url, "SELECT 1").text == "1\n"
    for connection in stalled:
        connection.close()


def test_queries_run_side_by_side(url: str) -> None:
    answers: list[str] = []
    asking = [threading.Thread(target=lambda: answers.append(ask(url, "SELECT sleep(1)").text)) for _ in range(12)]
    began = time.monotonic()
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert answers == ["0\n"] * 12
    assert time.monotonic() - began < 12 * 1


def test_shutting_down_ends_running_queries(store: Client, data_dir: Path) -> None:
    before = set(threading.enumerate())
    with serving_sql(connection_string(data_dir), str(store.database)) as url:
        connection = send_raw(url, ENDLESS)
        eventually(lambda: running(store) == 1)
        began = time.monotonic()
    assert time.monotonic() - began < 3
    assert running(store) == 0
    connection.close()
    assert set(threading.enumerate()) <= before


def test_a_taken_port_is_one_clear_line(store: Client, data_dir: Path, url: str) -> None:
    port = urlsplit(url).port
    assert port is not None
    taken = pytest.raises(PortTakenError, match=f"port {port} .*TACHOGRAPH_CLICKHOUSE_PORT")
    with taken, serving_sql(connection_string(data_dir), str(store.database), port=port):
        pass


def test_an_answer_that_is_not_read_to_its_end_leaves_a_usable_client(client: Client) -> None:
    with client.query_row_block_stream("SELECT number FROM numbers(10000000)") as blocks:
        next(iter(blocks))
    assert client.query("SELECT 1").first_row == (1,)


def test_half_a_request_harms_nothing(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", "100")
    connection.endheaders(b"SELECT")
    connection.close()
    assert ask(url, "SELECT 1").text == "1\n"


def test_a_kept_connection_does_not_wait_for_acknowledgements(url: str) -> None:
    """TCP's delayed acknowledgement adds 40 ms to every answer where TCP_NODELAY is not set."""
    took_s = []
    with httpx.Client() as keeping:
        for _ in range(15):
            began = time.monotonic()
            assert keeping.get(root(url) + "ping").status_code == 200
            took_s.append(time.monotonic() - began)
    assert statistics.median(took_s) < 0.03

"""Who carries out an order: the collector that holds the data directory, or the store that a URL names."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from collector.control.giving import Door, NotTakenError, taker
from collector.control.key import make_key
from collector.control.names import TELL_STORE
from collector.spool.database import hold, spool_file
from collector.store import retention
from collector.store.clickhouse import StoreError
from collector.store.retention import RetentionError
from tachograph import application

ITS_URL = "http://127.0.0.1:9/fleet"


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A data directory that a collector holds."""
    make_key(tmp_path)
    with hold(spool_file(tmp_path)):
        yield tmp_path


def settings(data_dir: Path, clickhouse_url: str) -> Any:
    return SimpleNamespace(
        data_dir=data_dir,
        clickhouse_url=clickhouse_url,
        clickhouse_cluster="",
        retention="",
        otlp_http_port=9,
        tls_ca=None,
        own_url=lambda port: f"http://127.0.0.1:{port}",
    )


def telling(monkeypatch: pytest.MonkeyPatch, store_url: str) -> None:
    """The collector says that this is its store."""
    monkeypatch.setattr(Door, "carry_out", lambda _, name, __: {TELL_STORE: store_url}[name])


def test_without_a_url_it_is_the_collector(held: Path) -> None:
    with taker(settings(held, "")) as orders:
        assert isinstance(orders, Door)


@pytest.mark.parametrize("url", [ITS_URL, "http://writer:secret@127.0.0.1:9/fleet/"])
def test_a_url_of_its_own_store_is_the_collectors(held: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    telling(monkeypatch, ITS_URL)
    with taker(settings(held, url)) as orders:
        assert isinstance(orders, Door)


@pytest.mark.parametrize("its_store", ["", "http://127.0.0.1:9/other", "http://127.0.0.1:10/fleet"])
def test_a_url_of_another_store_is_obeyed(held: Path, monkeypatch: pytest.MonkeyPatch, its_store: str) -> None:
    telling(monkeypatch, its_store)
    with pytest.raises(StoreError, match=f"^ClickHouse at {ITS_URL} did not answer"), taker(settings(held, ITS_URL)):
        pass


def test_a_collector_that_does_not_answer_may_be_just_ending(held: Path) -> None:
    with (
        taker(settings(held, "")) as orders,
        pytest.raises(
            NotTakenError, match=r"just starting or ending, so try again; else set TACHOGRAPH_OTLP_HTTP_PORT"
        ),
    ):
        orders.carry_out(TELL_STORE, {})


@pytest.mark.parametrize("of_a_collector", [True, False], ids=["a collector runs", "none runs"])
@pytest.mark.parametrize(
    ("pinned", "exit_code", "said"),
    [
        ("nosuch=abc", 2, "TACHOGRAPH_RETENTION has 'nosuch=abc': write TABLE=DAYS"),
        ("graph_executions=0", 2, "TACHOGRAPH_RETENTION: graph_executions cannot be kept for 0 days"),
        ("graph_executions=14", 1, "graph_executions is kept for 14 days by TACHOGRAPH_RETENTION: change it there"),
    ],
)
def test_what_is_pinned_holds_whoever_carries_it_out(
    tmp_path: Path, of_a_collector: bool, pinned: str, exit_code: int, said: str
) -> None:
    with ExitStack() as running:
        if of_a_collector:
            make_key(tmp_path)
            running.enter_context(hold(spool_file(tmp_path)))
        called = CliRunner().invoke(
            application(),
            ["retention", "set", "graph_executions", "6", "--retention", pinned],
            env={"TACHOGRAPH_DATA_DIR": str(tmp_path), "TACHOGRAPH_OTLP_HTTP_PORT": "9"},
        )
    assert isinstance(called.exception, RetentionError)
    assert str(called.exception).startswith(said)
    assert called.exception.exit_code == exit_code


@pytest.mark.parametrize("url", ["", ITS_URL], ids=["a collector runs", "a server by its URL"])
def test_what_is_pinned_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    parsed: list[str] = []
    pair = retention._PAIR

    class Counting:
        def fullmatch(self, text: str) -> re.Match[str] | None:
            parsed.append(text)
            return pair.fullmatch(text)

    monkeypatch.setattr(retention, "_PAIR", Counting())
    with ExitStack() as running:
        if not url:
            make_key(tmp_path)
            running.enter_context(hold(spool_file(tmp_path)))
        called = CliRunner().invoke(
            application(),
            ["retention", "set", "graph_executions", "14", "--retention", "graph_executions=14"],
            env={
                "TACHOGRAPH_DATA_DIR": str(tmp_path),
                "TACHOGRAPH_OTLP_HTTP_PORT": "9",
                "TACHOGRAPH_CLICKHOUSE_URL": url,
            },
        )
    assert isinstance(called.exception, StoreError if url else NotTakenError)
    assert parsed == ["graph_executions=14"]


def test_a_wrong_pin_is_refused_by_who_only_asks(held: Path) -> None:
    wrong = settings(held, "")
    wrong.retention = "graph_executions=0"
    with pytest.raises(RetentionError, match="cannot be kept for 0 days"), taker(wrong):
        pass


@pytest.mark.parametrize("is_there", [True, False], ids=["a directory", "none"])
@pytest.mark.parametrize(
    ("url", "error", "said"),
    [("", NotTakenError, "holds no store: name the collector's --data-dir"), (ITS_URL, StoreError, "did not answer")],
    ids=["embedded", "a server"],
)
def test_where_nothing_is_nothing_is_made(
    tmp_path: Path, is_there: bool, url: str, error: type[Exception], said: str
) -> None:
    data_dir = tmp_path / "data"
    if is_there:
        data_dir.mkdir()
    with pytest.raises(error, match=said), taker(settings(data_dir, url)):
        pass
    assert list(tmp_path.rglob("*")) == ([data_dir] if is_there else [])

"""What the control door answers where an order is not carried out, and what the command that gave it ends with."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client
from starlette.applications import Starlette

from collector.acceptance import StoreUnavailableError
from collector.backup.making import Source
from collector.control.giving import Door, NotTakenError
from collector.control.key import make_key
from collector.control.names import BACK_UP, CHANGE_RETENTION
from collector.control.orders import Holdings, Orders
from collector.http_server import HttpServer
from collector.ports import bind, port_of
from collector.receivers.control import ControlReceiver
from tests.fixtures.fake_store import FakeStore, request, writing
from tests.fixtures.senders import eventually


@contextmanager
def door_to(orders: Orders, data_dir: Path) -> Iterator[Door]:
    """The door of a collector that carries out these orders, as a command has it."""
    listening = bind("127.0.0.1", 0, "no setting")
    port = port_of(listening)
    server = HttpServer(Starlette(routes=ControlReceiver(orders, make_key(data_dir)).routes), listening, "door")
    server.start()
    settings: Any = SimpleNamespace(
        data_dir=data_dir,
        otlp_http_port=port,
        tls_ca=None,
        own_url=lambda port: f"http://127.0.0.1:{port}",
    )
    try:
        yield Door(settings)
    finally:
        server.stop()


def test_an_insert_that_hangs_is_told_as_it_is(tmp_path: Path, clickhouse: Client) -> None:
    store = FakeStore()
    with writing(store, tmp_path) as written:
        store.gate.clear()
        written.writer.accept(request(1), "grpc")
        eventually(store.inserting.is_set)
        source = Source(tmp_path / "data", written.spool.file, lambda: written.writer._drain.resting(within_s=0.01))
        with door_to(Orders(Holdings(lambda: nullcontext(clickhouse), "", {}, source)), tmp_path) as door:
            with pytest.raises(NotTakenError, match=r"^an insert has been under way for 0 s: see /readyz$") as hung:
                door.carry_out(BACK_UP, {"to": str(tmp_path / "backup")})
            assert hung.value.exit_code == 3
        store.gate.set()


def test_a_store_that_is_away_is_told_as_it_is(tmp_path: Path) -> None:
    @contextmanager
    def using() -> Iterator[Client]:
        raise StoreUnavailableError("the store is busy")
        yield

    with door_to(Orders(Holdings(using, "", {}, None)), tmp_path) as door:
        with pytest.raises(NotTakenError, match=r"^the store is busy$") as away:
            door.carry_out(BACK_UP, {"to": "/b"})
        assert away.value.exit_code == 3


@pytest.mark.parametrize(
    ("order", "said", "exit_code"),
    [
        ((BACK_UP, {"to": "here"}), "^here is no absolute path$", 2),
        ((BACK_UP, {}), "^backup wants a value for 'to'$", 1),
        ((CHANGE_RETENTION, {"table": "cells", "days": "x"}), "^days are a number, and not 'x'$", 1),
    ],
    ids=["a wrong place", "no place", "no number"],
)
def test_what_is_wrong_with_an_order_is_told_as_the_command_without_a_collector_has_it(
    tmp_path: Path, clickhouse: Client, order: tuple[str, dict[str, str]], said: str, exit_code: int
) -> None:
    source = Source(tmp_path / "data", tmp_path / "spool.sqlite", nullcontext)
    with door_to(Orders(Holdings(lambda: nullcontext(clickhouse), "", {}, source)), tmp_path) as door:
        with pytest.raises(NotTakenError, match=said) as refused:
            door.carry_out(*order)
        assert refused.value.exit_code == exit_code

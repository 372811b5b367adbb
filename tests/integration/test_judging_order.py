"""Which cells are judged first: what arrives as it happens, whatever other hosts' clocks say."""

from datetime import UTC, datetime, timedelta

from clickhouse_connect.driver.client import Client

from collector.judging.judging import CellJudge
from collector.store.client import StoreClient
from tests.fixtures.asking import START, ask
from tests.fixtures.query_rows import ENGINE, insert, round_of

AHEAD_H = {"right": 0, "two hours ahead": 2, "nine hours ahead": 9, "a year ahead": 8760, "a century ahead": 876_000}
LOOKS = 8


def sent(client: Client, name: str, turn: int) -> None:
    """A cell that has just ended by that engine's clock."""
    ahead = timedelta(hours=AHEAD_H[name])
    begin_ms = int((datetime.now(UTC) + ahead - timedelta(seconds=60) - START) / timedelta(milliseconds=1))
    rounds = [round_of(turn * 10 + n, begin_ms + 30 * n, "P128", 28, cell_id=f"{name} {turn}") for n in range(10)]
    insert(client, rounds, ENGINE._replace(service_instance_id=name))


def judged(client: Client) -> set[str]:
    return {row["cell"] for row in ask(client, "live_cells", last_s=0) if row["judged"]}


def test_hosts_whose_clocks_are_ahead_hold_up_nobody(clickhouse: Client) -> None:
    judge = CellJudge(StoreClient(lambda: clickhouse))
    for turn in range(LOOKS):
        for name in AHEAD_H:
            sent(clickhouse, name, turn)
        assert 1 <= judge.look(clickhouse) <= 2
        assert f"right {turn}" in judged(clickhouse)
    while judge.look(clickhouse):
        pass
    assert judged(clickhouse) == {f"{name} {n}" for name in AHEAD_H if "century" not in name for n in range(LOOKS)}

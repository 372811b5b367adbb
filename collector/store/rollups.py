"""The rollups after an insert that was cut off half-way.

ClickHouse commits executions first and what its views make of them a second later, on a busy machine. A process that
is killed in between has the executions and not their share of the rollups; and the next attempt leaves out what is
stored. So after such an attempt each rollup is counted, and given what it lacks.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from clickhouse_connect.driver.client import Client

_ARRIVED: Final = (
    "received_at BETWEEN fromUnixTimestamp64Milli({first}) AND fromUnixTimestamp64Milli({last})"
    " AND toUnixTimestamp64Milli(received_at) IN {arrived}"
)
"""Which executions an insert was to store; the first part finds the days that they lie in."""
ARRIVED: Final = _ARRIVED.format(first="{first:Int64}", last="{last:Int64}", arrived="{arrived:Array(Int64)}")
"""The same for a query whose parameters are `arrivals`."""
_WINDOWS: Final = f"""
WITH own AS (
    SELECT toDate(received_at) AS day, service_instance_id, toStartOfInterval(started_at, INTERVAL 30 SECOND) AS beginning
    FROM graph_executions
    WHERE {ARRIVED}
),
touched AS (SELECT DISTINCT day, service_instance_id, beginning FROM own)
SELECT
    (SELECT count() FROM own),
    (SELECT count() FROM graph_executions
        WHERE (toDate(received_at), service_instance_id, toStartOfInterval(started_at, INTERVAL 30 SECOND)) IN touched
            AND (service_instance_id, toStartOfInterval(started_at, INTERVAL 30 SECOND)) IN (SELECT service_instance_id, beginning FROM touched)),
    (SELECT sum(executions) FROM cell_graphs WHERE (received_on, service_instance_id, window_started_at) IN touched),
    (SELECT sum(executions) FROM cell_windows WHERE (received_on, service_instance_id, window_started_at) IN touched),
    (SELECT sum(executions) FROM engine_seconds
        WHERE (received_on, service_instance_id, toStartOfInterval(second_started_at, INTERVAL 30 SECOND)) IN touched)
"""  # noqa: S608 -- our own condition
_VIEWS: Final = """
SELECT t.name, t.as_select, c.names
FROM system.tables AS t
INNER JOIN (
    SELECT table, arrayStringConcat(arrayMap(one -> one.2, arraySort(groupArray((position, name)))), ', ') AS names
    FROM system.columns WHERE database = currentDatabase() GROUP BY table
) AS c ON c.table = t.name
WHERE t.database = currentDatabase() AND t.name IN ('fill_cell_graphs', 'fill_cell_windows', 'fill_engine_seconds')
    AND (SELECT any(engine) FROM system.tables WHERE database = currentDatabase() AND name = 'graph_executions') != 'Distributed'
"""


def arrivals(arrived_unix_ms: Iterable[int]) -> dict[str, Any]:
    """The parameters of `ARRIVED`, of at least one arrival."""
    arrived = sorted(set(arrived_unix_ms))
    return {"arrived": arrived, "first": arrived[0], "last": arrived[-1]}


def mend_rollups(client: Client, arrived_unix_ms: Iterable[int], token: str, settings: Mapping[str, Any]) -> list[str]:
    """Give each rollup what it lacks of the executions that arrived then; the rollups that lacked something.

    Nothing is done where a count cannot be explained by these executions alone, nor on a cluster, whose servers
    outlive a collector (docs/cluster.md).

    Args:
        client: Of the store.
        arrived_unix_ms: Arrivals of the requests whose insert was made again, one at least.
        token: Names the insert; the same is mended once.
        settings: Those of inserts.

    Raises:
        ClickHouseError: as it comes.
    """
    views = {name: (statement, columns) for name, statement, columns in client.query(_VIEWS).result_rows}
    if not views:
        return []
    parameters = arrivals(arrived_unix_ms)
    ((own, stored, *rolled_up),) = client.query(_WINDOWS, parameters=parameters).result_rows
    short = [
        rollup
        for rollup, count in zip(("cell_graphs", "cell_windows", "engine_seconds"), rolled_up, strict=True)
        if own and stored - (count or 0) == own
    ]
    # Numbers, because ClickHouse fills no parameters in where a setting has SQL.
    only_these = {"graph_executions": _ARRIVED.format(**parameters)}
    for rollup in short:
        if rollup == "cell_windows" and "cell_graphs" in short:
            continue  # Its view fills it from what comes into that one.
        client.command(
            f"INSERT INTO {rollup} ({views[f'fill_{rollup}'][1]}) {_made_of_executions(rollup, views)}",
            settings={
                **settings,
                "insert_deduplication_token": f"{token}-{rollup}",
                "additional_table_filters": only_these,
            },
        )
    return short


def _made_of_executions(rollup: str, views: Mapping[str, tuple[str, str]]) -> str:
    """The statement of a rollup's view; that of `cell_windows` over what `cell_graphs` should have had."""
    statement, _ = views[f"fill_{rollup}"]
    if rollup != "cell_windows":
        return statement
    before, _, after = statement.partition(".cell_graphs AS g")
    return f"{before.rpartition('FROM ')[0]}FROM ({views['fill_cell_graphs'][0]}) AS g{after}"

"""What sampling did for half a year takes no memory of a look: it is bounded, and beyond its bound nothing is sampled."""

import pytest
from clickhouse_connect.driver.client import Client

from collector.sampling import sampling
from collector.sampling.sampling import Sampled, Sampling
from engine_hooks.contract.execution import EngineResource
from tests.integration.test_sampling import RULES, judge, left, steady, store

CELLS = 600_000
"""Of 100 engines, two days' worth."""
MEMORY_MAX = 128 * 1024**2
_LONG_AGO = """
INSERT INTO cell_samples (received_on, service_instance_id, cell, first_started_at, last_started_at, executions, reason, examined_at, dropped_at)
SELECT
    toDate(now('UTC')) - 30 - number % 20 AS received_on, concat('long-ago-', toString(number % 100)) AS service_instance_id, toString(number) AS cell,
    toDateTime64(received_on, 9, 'UTC'), toDateTime64(received_on, 9, 'UTC'), 1000, '', toDateTime64(received_on, 3, 'UTC'), toDateTime64(received_on, 3, 'UTC')
FROM numbers({cells:UInt64})
"""


def test_what_was_sampled_long_ago_takes_no_memory(clickhouse: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    clickhouse.command(_LONG_AGO, parameters={"cells": CELLS})
    store(clickhouse, steady(60), EngineResource("whole", host_name="a"))
    judge(clickhouse)
    monkeypatch.setitem(sampling._SETTINGS, "max_memory_usage", MEMORY_MAX)
    assert Sampling(clickhouse, RULES).run() == Sampled(CELLS + 2, CELLS + 2, 1000 * CELLS + 3000)
    assert left(clickhouse) == {}

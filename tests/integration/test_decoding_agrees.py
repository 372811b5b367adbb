"""Whatever values attributes have, ClickHouse and the contract's rules in Python come to the same verdict.

The table of cases changes one thing at a time. Here several go wrong together, in requests of mixed spans and resources,
so that what is quick to decode and what needs a second look stand side by side.
"""

from typing import Any

from clickhouse_connect.driver.client import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collector.acceptance import ReceivedRequest
from collector.decoding.wire import request_id_of
from collector.spool.verdict import verdict_of
from collector.store.request_store import RequestStore
from tests.fixtures.contract_cases import (
    GOOD_ATTRIBUTES,
    GOOD_RESOURCE,
    HOUR_NS,
    NO_ATTRIBUTES,
    STARTED_AT,
    SpanCase,
    request_of,
)

ARRIVED_UNIX_MS = 4_000_000_000_000
SCALARS = st.one_of(
    st.sampled_from([None, "", "P128", "ordinary", "speculative", "bogus", "ümlaut", True, False]),
    st.sampled_from([0, 1, -1, -(2**63), 2**63 - 1, HOUR_NS, HOUR_NS + 1, -HOUR_NS, -HOUR_NS - 1]),
    st.sampled_from([3.0, 2.5, float("nan"), float("inf"), 1e19, float(HOUR_NS + 1)]),
)
ITEMS = SCALARS.filter(lambda value: value is not None)
ITEMS_OR_LISTS = st.one_of(ITEMS, st.lists(ITEMS, max_size=3))
VALUES = st.one_of(SCALARS, st.lists(ITEMS, max_size=3), st.just({"a": 1}))
TIMES = st.sampled_from([0, 1, STARTED_AT, STARTED_AT + 1, STARTED_AT + HOUR_NS + 1, 2**63 - 1, 2**63, 2**64 - 1])


def changes(good: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.just({}), st.dictionaries(st.sampled_from([*good, "other"]), VALUES, max_size=3))


def repeated(good: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Values for attributes that were most likely sent before."""
    return st.one_of(st.just({}), st.just({}), st.dictionaries(st.sampled_from([*good]), ITEMS_OR_LISTS, max_size=2))


RESOURCES = st.one_of(
    changes(GOOD_RESOURCE | {"engine.own": ""}),
    # Nothing at all, or one thing: what is handed on of an odd resource is then as empty as of one that is fine.
    st.just(NO_ATTRIBUTES),
    st.builds(lambda name, value: NO_ATTRIBUTES | {name: value}, st.sampled_from([*GOOD_RESOURCE, "other"]), VALUES),
)
SPANS = st.builds(
    lambda attributes, resource, span, **others: SpanCase("any", None, attributes, resource, span, **others),
    changes(GOOD_ATTRIBUTES),
    RESOURCES,
    st.one_of(
        st.just({}),
        st.fixed_dictionaries({"start_time_unix_nano": TIMES, "end_time_unix_nano": TIMES}),
        st.fixed_dictionaries({"trace_id": st.binary(max_size=17)}),
        st.fixed_dictionaries({"name": st.sampled_from(["execute_graph", "GET /", "execute_graph x"])}),
    ),
    has_resource=st.sampled_from([True, True, True, False]),
    again=repeated(GOOD_ATTRIBUTES),
    resource_again=repeated(GOOD_RESOURCE),
)


# Not shrunk: an example takes ClickHouse a second where the machine is busy, and the requests that differ are shown.
@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.lists(SPANS, min_size=1, max_size=6), min_size=8, max_size=20))
def test_clickhouse_and_python_come_to_one_verdict(clickhouse: Client, requests: list[list[SpanCase]]) -> None:
    numbered = iter(range(1, 1_000))
    bodies = [
        request_of(case._replace(span={"span_id": next(numbered).to_bytes(8, "big"), **case.span}) for case in request)
        for request in requests
    ]
    ids = [request_id_of(body) for body in bodies]
    clickhouse.command("TRUNCATE TABLE graph_executions")
    clickhouse.command("TRUNCATE TABLE request_outcomes")
    store = RequestStore(clickhouse)
    batch = [ReceivedRequest.of(id_, body, ARRIVED_UNIX_MS) for id_, body in zip(ids, bodies, strict=True)]
    store.insert(batch, f"{hash(tuple(ids))}")
    expected = {id_: verdict_of(body) for id_, body in zip(ids, bodies, strict=True)}
    found = store.outcomes(ids)
    differing = {id_: (found.get(id_), told) for id_, told in expected.items() if found.get(id_) != told}
    assert not differing, [(requests[ids.index(id_)], both) for id_, both in differing.items()]
    assert clickhouse.command("SELECT count() FROM graph_executions") == sum(one.stored for one in expected.values())

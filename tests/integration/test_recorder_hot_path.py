"""The hot path's price, held to its promise."""

from tests.benchmarks.bench_recorder import measure


def test_record_costs_a_thirtieth_of_the_sdk() -> None:
    record = measure(n=500, repeats=5)[0]
    assert record.ratio is not None
    assert record.ratio <= 1 / 30
    assert record.ours < 1_000

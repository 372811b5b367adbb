"""What recording may cost, held to its promise beside the SDK in one run."""

from tests.benchmarks.bench_recorder import measure, measure_delivery


def test_record_costs_a_fiftieth_of_the_sdk() -> None:
    record = measure(n=500, repeats=5)[0]
    assert record.ratio is not None
    assert record.ratio <= 1 / 50
    assert record.ours < 1_000


def test_delivery_costs_a_quarter_of_the_sdk_with_its_exporter() -> None:
    background, whole, waiting, *_ = measure_delivery(n=2_000, repeats=2)
    assert background.ratio is not None
    assert whole.ratio is not None
    assert waiting.ratio is not None
    assert max(background.ratio, whole.ratio, waiting.ratio) <= 1 / 4

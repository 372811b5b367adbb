"""The demo engine: its speculative output is its plain output, and what it records is what it did."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import NamedTuple

import pytest
import torch
from scipy.stats import chisquare

from engine_hooks.adapters.device.errors import DeviceQueueError
from engine_hooks.adapters.torch_cpu.device_queue import DeviceQueue
from engine_hooks.commands.demo.torch_engine import torch_engine
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import FeedbackReason, GraphKind, Purpose
from engine_hooks.contract.validation import refusal
from engine_hooks.cost_model.registry import cost_model_named
from engine_hooks.errors import EngineHooksError
from engine_hooks.torch_demo.engine import CALIBRATION_EXECUTIONS, SpeculativeEngine
from engine_hooks.torch_demo.errors import DemoOptionError
from engine_hooks.torch_demo.host_delay import HostDelay, HostDelays, host_delay_of
from engine_hooks.torch_demo.lanes import Lanes
from engine_hooks.torch_demo.model import KeyValueCache, ModelShape, TinyTransformer
from engine_hooks.torch_demo.requests import Request, requests
from engine_hooks.torch_demo.tuning import Tuning, gains_of, tuned

SMALL = ModelShape(vocabulary=64, width=48, layers=2, heads=4, positions=160, context_weight=0.8)
"""In float64 below, so that a batch's size does not decide between two tokens that are all but tied."""
TOKENS = 90
DRAWN = 800
EVERY_TEMPERATURE = pytest.mark.parametrize("temperature", [0.0, 1.0], ids=["greedy", "sampled"])


@pytest.fixture(scope="module")
def model() -> TinyTransformer:
    torch.set_num_threads(1)
    return TinyTransformer(SMALL, seed=3, dtype=torch.float64)


@pytest.fixture
def queue() -> Iterator[DeviceQueue]:
    with DeviceQueue() as opened:
        yield opened


def generated(model: TinyTransformer, batch: list[Request], temperature: float, drafts: int) -> list[list[int]]:
    """What each request of a batch is answered with rounds of so many drafts, and no other engine around."""
    lanes = Lanes(model, len(batch), temperature)
    answers: list[list[int]] = []
    for lane, request in enumerate(batch):
        lanes.prefill(lane, request.prompt, request.seed)
        answers.append(lanes.outcomes.popleft().tokens[0])
    while min(map(len, answers)) < TOKENS:
        lanes.decode(drafts)
        outcome = lanes.outcomes.popleft()
        for answer, tokens, accepted in zip(answers, outcome.tokens, outcome.accepted, strict=True):
            answer.extend(tokens[: accepted + 1])
    return [answer[:TOKENS] for answer in answers]


@EVERY_TEMPERATURE
def test_speculative_output_is_plain_output(model: TinyTransformer, temperature: float) -> None:
    batch = list(islice(requests(5, SMALL.vocabulary, TOKENS), 3))
    plain = generated(model, batch, temperature, drafts=0)
    for drafts in (1, 3, 7):
        assert generated(model, batch, temperature, drafts) == plain
    assert [generated(model, [request], temperature, drafts=2)[0] for request in batch] == plain
    assert len({tuple(answer) for answer in plain}) == 3


def test_drafts_are_accepted_now_and_then(model: TinyTransformer) -> None:
    lanes = Lanes(model, 3, temperature=1.0)
    for lane, request in zip(range(3), requests(5, SMALL.vocabulary, TOKENS), strict=False):
        lanes.prefill(lane, request.prompt, request.seed)
    lanes.outcomes.clear()
    counted: Counter[int] = Counter()
    for _ in range(20):
        lanes.decode(3)
        counted.update(lanes.outcomes.popleft().accepted)
    assert counted[0] >= 5
    assert counted[1] + counted[2] + counted[3] >= 5


def test_samples_are_distributed_as_the_model_says(model: TinyTransformer) -> None:
    prompt = next(requests(1, SMALL.vocabulary, 1)).prompt
    lanes = Lanes(model, 1, temperature=1.0)
    drawn: Counter[int] = Counter()
    for seed in range(DRAWN):
        lanes.prefill(0, prompt, seed)
        drawn[lanes.outcomes.popleft().tokens[0][0]] += 1
    cache = KeyValueCache(SMALL, 1, model.dtype)
    logits = model.logits(prompt[None], torch.arange(len(prompt))[None], cache)[0, -1]
    expected = (DRAWN * logits.softmax(-1)).tolist()
    likely = [token for token, count in enumerate(expected) if count >= 5]
    rest = DRAWN - sum(expected[token] for token in likely)
    assert len(likely) >= 4
    counts = [drawn[token] for token in likely]
    assert chisquare([*counts, DRAWN - sum(counts)], [*(expected[t] for t in likely), rest]).pvalue > 1e-4


def test_the_cache_gives_what_a_whole_pass_gives(model: TinyTransformer) -> None:
    tokens = torch.randint(SMALL.vocabulary, (1, 20), generator=torch.Generator().manual_seed(0))
    positions = torch.arange(20)[None]
    whole = model.logits(tokens, positions, KeyValueCache(SMALL, 1, model.dtype))
    cache = KeyValueCache(SMALL, 1, model.dtype)
    parts = [model.logits(tokens[:, a:b], positions[:, a:b], cache) for a, b in ((0, 7), (7, 8), (8, 20))]
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-9)
    garbage = torch.zeros_like(tokens[:, :3])
    model.logits(garbage, positions[:, 10:13], cache)  # drafts that were not accepted
    again = model.logits(tokens[:, 10:], positions[:, 10:], cache)
    assert torch.allclose(again, whole[:, 10:], atol=1e-9)


def tuning(drafts: int) -> Tuning:
    return Tuning(drafts, 1.5, (0.5,) * 7, (1_000_000,) * 8)


@EVERY_TEMPERATURE
def test_the_engine_answers_as_plain_decode_would(
    model: TinyTransformer, queue: DeviceQueue, temperature: float
) -> None:
    """Whatever the scheduler chose and however the host stumbled."""
    recorded: list[GraphExecution] = []
    delivered: list[Request] = []
    engine = SpeculativeEngine(
        Lanes(model, 3, temperature),
        queue,
        tuning(3),
        cost_model_named("drained_share"),
        recorded.append,
        seed=5,
        delays=HostDelays([HostDelay(0.0, 0.01), HostDelay(0.05, 0.01)]),
        labels={"cell_id": "bench-1"},
        deliver=delivered.append,
    )
    engine.run(60, lambda: len(delivered) >= 5)
    batch = list(islice(requests(5, SMALL.vocabulary, TOKENS), 12))
    plain = dict(zip((request.seed for request in batch), generated(model, batch, temperature, drafts=0), strict=True))
    assert len(delivered) >= 5
    for request in delivered:
        assert len(request.tokens) == request.tokens_max
        assert request.tokens[:TOKENS] == plain[request.seed]
    check_records(recorded, engine)
    assert 1 <= len(engine.delays.met) <= 2
    in_flight = sum(len(request.tokens) for request in engine._batch if request is not None and not request.finished)
    assert engine.totals.tokens_emitted == in_flight + sum(len(request.tokens) for request in delivered)


def check_records(recorded: list[GraphExecution], engine: SpeculativeEngine) -> None:
    """Every submission once, in order, as the contract wants it."""
    assert [execution.graph_sequence for execution in recorded] == list(range(len(recorded)))
    assert all(refusal(execution, EngineResource("host1:1")) is None for execution in recorded)
    assert not any(engine.executions.losses.values())
    calibrations, served = recorded[: 2 * CALIBRATION_EXECUTIONS], recorded[2 * CALIBRATION_EXECUTIONS :]
    assert {(e.graph_purpose, e.graph_queue_depth, e.batch_tokens_emitted) for e in calibrations} == {
        (Purpose.REFRESH, 0, 0)
    }
    prefills = [e for e in served if e.graph_kind == GraphKind.PREFILL]
    assert {e.graph_completion_feedback_reason for e in prefills} == {FeedbackReason.PREFILL}
    assert all(after.graph_queue_depth == 0 for e, after in pairwise(served) if e.graph_completion_feedback)
    speculative = [e for e in served if e.graph_kind == GraphKind.SPECULATIVE]
    assert speculative
    for e in speculative:
        assert (e.graph_name, e.batch_verification_budget, e.batch_tokens_drafted) == ("P12", 12, 9)
        assert set(e.scheduler_candidate_graphs) == {"decode", "P12"}
        assert 0 <= (e.batch_tokens_accepted or 0) <= 9
    assert {e.graph_queue_depth for e in served} == {0, 1}
    assert {e.cell_id for e in recorded} == {"bench-1"}
    assert engine.totals.executions == len(served)


def test_work_that_fails_ends_the_engine_with_its_error(model: TinyTransformer, queue: DeviceQueue) -> None:
    lanes = Lanes(model, 2, 0.0)
    engine = SpeculativeEngine(
        lanes, queue, tuning(2), cost_model_named("idle_gap"), [].append, seed=0, delays=HostDelays([])
    )
    lanes.heads = lanes.heads[:3]  # tokens beyond the table
    with pytest.raises(DeviceQueueError, match="index"):
        engine.run(60, lambda: False)


def test_tuning_offers_the_budget_nearest_to_the_gain_it_wants(model: TinyTransformer, queue: DeviceQueue) -> None:
    found = tuned(Lanes(model, 2, 1.0), queue, seed=1)
    assert len(found.acceptance) == 7
    assert all(0 < rate < 1 for rate in found.acceptance)
    assert all(time_ns > 0 for time_ns in found.gpu_times_ns)
    gains = gains_of(found.acceptance, found.gpu_times_ns)
    assert gains[0] == 1.0
    assert found.gain == gains[found.drafts]
    assert abs(math.log(found.gain / 1.5)) == min(abs(math.log(gain / 1.5)) for gain in gains[1:])


def test_gains() -> None:
    assert gains_of((0.5, 0.5), (10, 12, 14)) == [1.0, 1.5 * 10 / 12, 1.75 * 10 / 14]


def test_requests_are_the_seeds() -> None:
    first, again, other = (list(islice(requests(seed, 64, 9), 3)) for seed in (1, 1, 2))
    assert [r.prompt.tolist() for r in first] == [r.prompt.tolist() for r in again]
    assert [r.prompt.tolist() for r in first] != [r.prompt.tolist() for r in other]
    assert len({r.seed for r in first + other}) == 6
    request = dataclasses.replace(first[0], tokens_max=3)
    assert [request.take([1, 2]), request.take([3, 4]), request.take([5])] == [2, 1, 0]
    assert (request.tokens, request.finished) == ([1, 2, 3], True)


def test_stumbles_as_they_are_written() -> None:
    assert host_delay_of("60ms@10s") == HostDelay(10.0, 0.06)
    assert host_delay_of(" 2.5ms@0.5s ") == HostDelay(0.5, 0.0025)
    for wrong, why in (
        ("60ms", "is no stumble"),
        ("60@10s", "is no stumble"),
        ("-1ms@2s", "lasts -1 ms"),
        ("0ms@2s", "lasts 0 ms"),
        ("60ms@10s!", "is no stumble"),
        ("10001ms@1s", "lasts 10001 ms, not more than 0 and at most 10 s"),
        (f"60ms@{'9' * 400}s", "lies beyond all time"),
        ("60ms@-1s", "lies before the start, at -1 s"),
        ("", "is no stumble"),
    ):
        with pytest.raises(DemoOptionError, match=f"{why}.*write it as 60ms@10s"):
            host_delay_of(wrong)
    assert str(HostDelay(0.5, 0.0025)) == "2.5ms@0.5s"


class Nowhere(NamedTuple):
    """The one setting of the command."""

    otlp_endpoint: str = "http://127.0.0.1:1"


def test_wrong_options_are_refused_before_anything_is_started() -> None:
    for options, endpoint, said in (
        ({"host_delay": ["60ms"]}, "http://127.0.0.1:1", "write it as 60ms@10s"),
        ({"cost_model": "mean"}, "http://127.0.0.1:1", "no cost model is called 'mean'"),
        ({"host": " "}, "http://127.0.0.1:1", "--host is empty"),
        ({}, "nowhere", "'nowhere' is no OTLP endpoint"),
    ):
        with pytest.raises(EngineHooksError, match=said) as refused:
            torch_engine(Nowhere(endpoint), **options)  # type: ignore[arg-type]
        assert refused.value.exit_code == (2 if options else 1)


def test_each_stumble_happens_once_in_order_of_time() -> None:
    slept: list[float] = []
    delays = HostDelays([HostDelay(5, 0.2), HostDelay(1, 0.1)], slept.append)
    assert [delays.meet(elapsed_s) for elapsed_s in (0.5, 1.0, 1.1)] == [False, True, False]
    assert delays.waiting == [HostDelay(5, 0.2)]
    assert [delays.meet(elapsed_s) for elapsed_s in (6.0, 7.0)] == [True, False]
    assert slept == [0.1, 0.2]
    assert [met.delay.at_s for met in delays.met] == [1, 5]

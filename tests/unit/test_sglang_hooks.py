"""The SGLang plugin around classes in the shape of SGLang's: what is recorded, and that nothing else changes."""

from types import SimpleNamespace
from typing import Any

import pytest

from collector.conformance.rules import Severity
from engine_hooks.adapters.guarded import FAILURES_MAX
from engine_hooks.adapters.sglang import targets
from engine_hooks.adapters.sglang.resource import resource_of
from engine_hooks.adapters.sglang.steps import DEVICE_WAIT_NS, IN_FLIGHT_MAX
from engine_hooks.adapters.sglang.targets import Method
from engine_hooks.contract.execution import EngineResource
from engine_hooks.contract.names import FeedbackReason, GpuTimeSource, GraphKind
from tests.fixtures import sglang_fakes as fakes
from tests.fixtures.conformance_runs import findings_of
from tests.fixtures.sglang_engines import Engine, hooked
from tests.fixtures.sglang_fakes import CLASSES, ForwardMode, Scheduler


def test_the_overlapping_loop() -> None:
    engine = Engine()
    engine.run([engine.batch() for _ in range(5)])
    assert [record.graph_name for record in engine.records] == ["DECODE-4"] * 5
    assert [record.graph_queue_depth for record in engine.records] == [0, 1, 1, 1, 1]
    assert [record.graph_after_idle for record in engine.records] == [True, False, False, False, False]
    assert [record.graph_sequence for record in engine.records] == [0, 1, 2, 3, 4]
    assert {record.graph_kind for record in engine.records} == {GraphKind.PLAIN_DECODE}
    assert {record.batch_tokens_emitted for record in engine.records} == {4}
    assert {record.graph_completion_feedback for record in engine.records} == {False}
    assert engine.stopped


def test_device_times_are_the_devices_own() -> None:
    engine = Engine()
    engine.run([engine.batch() for _ in range(5)])
    assert {record.graph_gpu_time_source for record in engine.records} == {GpuTimeSource.CUDA_EVENT}
    # On a drained queue the launch is inside; queued ones take what the graph takes, without a gap.
    assert engine.records[0].graph_gpu_time_ns == fakes.PLAIN_NS + fakes.LAUNCH_NS
    assert {record.graph_gpu_time_ns for record in engine.records[1:]} == {fakes.PLAIN_NS}
    assert {record.graph_wall_time_ns for record in engine.records[1:]} == {fakes.PLAIN_NS}


def test_a_completion_is_seen_before_its_results_are_worked_off() -> None:
    engine = Engine(overlap=False)
    engine.run([engine.batch(), engine.batch()])
    assert engine.records[0].duration_ns == fakes.PLAIN_NS + fakes.LAUNCH_NS


def test_speculative_steps_count_as_sglang_does() -> None:
    engine = Engine(speculates=True)
    scheduler = engine.run([engine.batch() for _ in range(7)])
    processor = scheduler.batch_result_processor
    assert sum(record.batch_tokens_accepted or 0 for record in engine.records) == processor.correct_drafts
    drafted = sum(record.batch_tokens_drafted or 0 for record in engine.records)
    # 4 lanes a step draft 12 tokens; the planner lets 9 of them be verified.
    assert drafted == processor.verified_rows // 4 * 9 < processor.verified_rows * (fakes.DRAFTS - 1)
    emitted = sum(record.batch_tokens_emitted or 0 for record in engine.records)
    assert emitted == processor.correct_drafts + processor.verified_rows
    assert {record.graph_name for record in engine.records} == {"TARGET_VERIFY-4"}
    assert {record.graph_kind for record in engine.records} == {GraphKind.SPECULATIVE}
    # The drafter's graph begins the step on the device, the target's names it.
    assert engine.records[-1].graph_gpu_time_ns == 2 * fakes.DRAFT_NS + fakes.VERIFY_NS


def test_the_budgets_prediction_is_the_estimate() -> None:
    engine = Engine(speculates=True)
    engine.run([engine.batch(ForwardMode.EXTEND, extend_num_tokens=100), engine.batch(), engine.batch()])
    prefill, *verifies = engine.records
    assert (prefill.scheduler_estimate_ns, prefill.scheduler_cost_model) == (None, "")
    assert {record.scheduler_estimate_ns for record in verifies} == {12_500_000}
    assert {record.scheduler_cost_model for record in verifies} == {"sglang_dspark"}
    assert {record.batch_verification_budget for record in verifies} == {4 + 9}


def test_prefill_and_grammar() -> None:
    engine = Engine()
    engine.run(
        [
            engine.batch(ForwardMode.EXTEND, extend_num_tokens=300),
            engine.batch(ForwardMode.MIXED, extend_num_tokens=129),
            engine.batch(ForwardMode.EXTEND, extend_num_tokens=60),
            engine.batch(has_grammar=True),
        ]
    )
    assert [record.graph_name for record in engine.records] == ["prefill-512", "mixed-256", "PREFILL-64", "DECODE-4"]
    assert [record.graph_kind for record in engine.records] == ["prefill", "mixed", "prefill", "plain_decode"]
    reasons = [record.graph_completion_feedback_reason for record in engine.records]
    assert reasons == [None, None, None, FeedbackReason.GRAMMAR]


def test_without_overlap_every_step_waits_for_the_one_before() -> None:
    engine = Engine(overlap=False)
    engine.run([engine.batch(ForwardMode.EXTEND, extend_num_tokens=8), engine.batch(), engine.batch()])
    assert {record.graph_queue_depth for record in engine.records} == {0}
    reasons = [record.graph_completion_feedback_reason for record in engine.records]
    assert reasons == [FeedbackReason.PREFILL, FeedbackReason.COMPLETION_INPUTS, FeedbackReason.COMPLETION_INPUTS]


def test_after_idle_and_batches_that_run_nothing() -> None:
    engine = Engine()
    engine.run([engine.batch(), None, None, engine.batch(), engine.batch(ForwardMode.IDLE, lanes=0), engine.batch()])
    assert [record.graph_after_idle for record in engine.records] == [True, True, False]
    # The idle batch stands in the engine's queue, but is no submission that was recorded.
    assert [record.graph_queue_depth for record in engine.records] == [0, 0, 0]


@pytest.mark.parametrize("on_device", [True, False], ids=["device times", "host times"])
@pytest.mark.parametrize("speculates", [True, False], ids=["speculative", "plain"])
@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "normal"])
def test_what_is_recorded_conforms(*, overlap: bool, speculates: bool, on_device: bool) -> None:
    engine = Engine(overlap=overlap, speculates=speculates, on_device=on_device)
    engine.run(
        [
            engine.batch(ForwardMode.EXTEND, extend_num_tokens=9),
            *(engine.batch() for _ in range(30)),
            None,
            engine.batch(),
        ]
    )
    assert len(engine.records) == 32
    resource = EngineResource("i", service_name="s", host_name="h", engine_name="sglang")
    found = findings_of(engine.records, resource)
    assert {finding.rule.id for finding in found if finding.rule.severity is Severity.ERROR} == set()
    # SGLang says what it chose from nowhere, and without DSpark nothing of what it expected.
    assert {finding.rule.id for finding in found} <= {"estimate-missing", "candidates-missing"}


def _raise(*_: Any) -> None:
    raise ZeroDivisionError("ours")


@pytest.mark.parametrize("half", ["before", "after"])
@pytest.mark.parametrize(
    "method", [m for m in targets.METHODS if m.owner in CLASSES], ids=lambda m: f"{m.owner}.{m.name}"
)
def test_a_hook_that_raises_changes_nothing(method: Method, half: str) -> None:
    bare, engine = Engine(speculates=True), Engine(speculates=True)
    prompt = {"mode": ForwardMode.EXTEND, "extend_num_tokens": 9}
    bare_batches, batches = (
        [one.batch(**(prompt if at % 2 else {})) for at in range(18)] for one in (bare, engine)
    )  # fmt: skip
    expected = bare.run_bare(list(bare_batches))
    hook = engine.hooks[method]
    setattr(hook, half, _raise)
    scheduler = engine.run(list(batches))
    assert scheduler.told == expected.told
    assert [[r.output_ids for r in b.reqs] for b in batches] == [[r.output_ids for r in b.reqs] for b in bare_batches]
    assert scheduler.device.now_ns == expected.device.now_ns
    assert 0 < hook.failures <= FAILURES_MAX
    assert hook.on == (hook.failures < FAILURES_MAX)


def test_what_the_engine_raises_passes_through() -> None:
    engine = Engine()
    with hooked(engine.hooks):
        ports = SimpleNamespace(device=engine.device, overlap=True, algorithm=engine.algorithm)
        scheduler = Scheduler(fakes.server_args(), ports)
        scheduler.fails_at = 2
        with pytest.raises(RuntimeError, match="out of memory"):
            scheduler.run_event_loop([engine.batch() for _ in range(4)])
        scheduler.result_queue.clear()  # SGLang would end here; one that goes on is recorded on
        scheduler.run_event_loop([engine.batch()])
    assert engine.steps.abandoned == 2
    assert [record.graph_sequence for record in engine.records] == [2]
    assert all(hook.failures == 0 for hook in engine.hooks.values())


def test_device_times_that_never_come_are_the_hosts_after_a_while() -> None:
    engine = Engine()
    engine.device.losing = True
    engine.run([engine.batch(), engine.batch()])
    engine.steps.settle(engine.device.now_ns + DEVICE_WAIT_NS)
    assert {record.graph_gpu_time_source for record in engine.records} == {GpuTimeSource.HOST}


def test_steps_without_results_are_bounded() -> None:
    engine = Engine(overlap=False)
    with hooked(engine.hooks):
        ports = SimpleNamespace(device=engine.device, overlap=False, algorithm=engine.algorithm)
        scheduler = Scheduler(fakes.server_args(), ports)
        for _ in range(IN_FLIGHT_MAX + 10):
            scheduler.run_batch(engine.batch())
    assert len(engine.steps.in_flight) == IN_FLIGHT_MAX
    assert engine.steps.abandoned == 10


def test_the_resource_says_how_the_engine_was_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "engine.recipe=latency,engine.own=x,host.name=here")
    resource = resource_of(fakes.server_args(), 3)
    assert (resource.service_name, resource.host_name, resource.engine_recipe) == ("chat", "here", "latency")
    assert (resource.engine_name, resource.engine_tensor_parallel) == ("sglang", 2)
    assert resource.service_instance_id.endswith("-dp3")
    settings = resource.engine_attributes
    assert settings["speculative_algorithm"] == "DSPARK"
    assert (settings["disable_cuda_graph"], settings["own"]) == ("false", "x")

"""The plugin around classes shaped like vLLM's."""

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from engine_hooks.adapters.guarded import FAILURES_MAX, wanted
from engine_hooks.adapters.vllm import plugin, scheduler_hooks, targets
from engine_hooks.adapters.vllm.resource import resource_of
from engine_hooks.adapters.vllm.wrapping import unwrap
from engine_hooks.recorder.recorder import Recorder
from tests.fixtures import vllm_fakes
from tests.fixtures.vllm_fakes import DECODE, config, sampled, scheduled

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Kept(SpanExporter):
    """An exporter that keeps what it is given."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Any) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    exporter = Kept()
    monkeypatch.setattr(
        scheduler_hooks, "Recorder", lambda resource, **settings: Recorder(resource, exporter=exporter, **settings)
    )
    return exporter


@pytest.fixture
def hooks(kept: Kept) -> Iterator[dict[targets.Method, Any]]:
    """The hooks, set on fake classes as `vllm`'s modules would be."""
    set_hooks = plugin.hooks()
    scheduler_module = ModuleType(targets.SCHEDULER)
    core_module = ModuleType(targets.ENGINE_CORE)
    scheduler_module.Scheduler = vllm_fakes.Scheduler  # type: ignore[attr-defined]
    core_module.EngineCore = vllm_fakes.EngineCore  # type: ignore[attr-defined]
    for module in (scheduler_module, core_module):
        plugin.set_on(module, {method: hook for method, hook in set_hooks.items() if method.module == module.__name__})
    yield set_hooks
    for method in set_hooks:
        for owner in (vllm_fakes.Scheduler, vllm_fakes.EngineCore):
            if owner.__name__ == method.owner:
                unwrap(owner, method.name)


def engine_with(*plan: Any, **changes: Any) -> vllm_fakes.EngineCore:
    return vllm_fakes.EngineCore(vllm_fakes.Scheduler(config(**changes), list(plan), num_spec_tokens=4))


def step(engine: vllm_fakes.EngineCore, **tokens: int) -> Any:
    """One step of an engine core without a batch queue."""
    engine.step()
    output = engine.scheduler.schedule()
    return engine.scheduler.update_from_output(output, model_runner_output=sampled(**tokens))


def test_steps_are_recorded_with_their_tokens_whole(hooks: Any, kept: Kept) -> None:
    engine = engine_with(scheduled({"a": 64, "b": 64}, new=("a", "b")), scheduled({"a": 5, "b": 1}, drafts={"a": 4}))
    step(engine, a=1, b=1)
    outputs = step(engine, a=3, b=1)
    engine.shutdown()
    assert [len(one.new_token_ids) for one in outputs[0].outputs] == [1, 1]
    assert [span.name for span in kept.spans] == ["execute_graph prefill-128", "execute_graph verify-8"]
    attributes = dict(kept.spans[1].attributes or {})
    assert attributes["batch.tokens_drafted"] == 4
    assert attributes["batch.tokens_accepted"] == 2  # though vLLM has cut the list by now
    assert attributes["batch.tokens_emitted"] == 2
    assert attributes["batch.verification_budget"] == 6
    assert attributes["graph.completion_feedback_reason"] == "copied_proposals"


def test_an_engine_that_ran_out_of_work_starts_anew(hooks: Any, kept: Kept) -> None:
    engine = engine_with(*[scheduled(DECODE)] * 4)
    step(engine, a=1, b=1)
    step(engine, a=1, b=1)
    engine.scheduler.unfinished = False
    step(engine, a=1, b=1)
    engine.scheduler.unfinished = True
    step(engine, a=1, b=1)
    engine.shutdown()
    assert [dict(span.attributes or {}).get("graph.after_idle", False) for span in kept.spans] == [
        True,
        False,
        False,
        True,
    ]


def test_waking_up_starts_anew(hooks: Any, kept: Kept) -> None:
    engine = engine_with(*[scheduled(DECODE)] * 2)
    step(engine, a=1, b=1)
    engine.resume_scheduler()
    step(engine, a=1, b=1)
    engine.shutdown()
    assert all(dict(span.attributes or {})["graph.after_idle"] for span in kept.spans)


def test_a_step_that_failed_does_not_stay_in_flight(hooks: Any, kept: Kept) -> None:
    engine = engine_with(*[scheduled(DECODE)] * 2)
    engine.step()
    engine.scheduler.schedule()  # and the device fails
    step(engine, a=1, b=1)
    engine.shutdown()
    (span,) = kept.spans
    assert dict(span.attributes or {})["graph.sequence"] == 1
    assert dict(span.attributes or {})["graph.queue_depth"] == 0


def test_depth_is_what_is_in_flight(hooks: Any, kept: Kept) -> None:
    engine = engine_with(*[scheduled(DECODE) for _ in range(3)], max_concurrent_batches=2)
    engine.batch_queue = deque()
    for _ in range(2):
        engine.step_with_batch_queue()
        engine.batch_queue.appendleft(engine.scheduler.schedule())
    while engine.batch_queue:
        engine.step_with_batch_queue()
        engine.scheduler.update_from_output(engine.batch_queue.pop(), sampled(a=1, b=1))
    engine.shutdown()
    assert [dict(span.attributes or {})["graph.queue_depth"] for span in kept.spans] == [0, 1]
    assert not any("graph.completion_feedback" in (span.attributes or {}) for span in kept.spans)


@pytest.mark.parametrize("half", ["before", "after"])
@pytest.mark.parametrize("method", [targets.SCHEDULE, targets.UPDATE, targets.STEP, targets.SHUTDOWN])
def test_a_fault_of_ours_changes_nothing(hooks: Any, kept: Kept, method: targets.Method, half: str) -> None:
    def raises(*_: Any) -> None:
        raise RuntimeError("a fault of ours")

    setattr(hooks[method], half, raises)
    engine = engine_with(*[scheduled(DECODE)] * (FAILURES_MAX + 2))
    for _ in range(FAILURES_MAX + 2):
        assert [len(one.new_token_ids) for one in step(engine, a=1, b=1)[0].outputs] == [1, 1]
    engine.shutdown()
    assert engine.shut_down
    often = method is not targets.SHUTDOWN
    assert hooks[method].failures == (FAILURES_MAX if often else 1)
    assert hooks[method].on is not often
    engine.scheduler._tachograph_run.close()


def test_what_the_engine_raises_passes_through(hooks: Any, kept: Kept) -> None:
    engine = engine_with()
    with pytest.raises(IndexError):
        engine.scheduler.schedule()
    engine.shutdown()


def test_a_method_that_has_moved_is_said(caplog: pytest.LogCaptureFixture) -> None:
    module = ModuleType(targets.SCHEDULER)
    method = targets.SCHEDULE
    plugin.set_on(module, {method: plugin.hooks()[method]})
    assert "this version of vLLM has no Scheduler.schedule: not recorded is anything" in caplog.text


# ---- whether anything happens at all


@pytest.mark.parametrize(
    ("environment", "on"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://c:4317"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4317"}, True),
        ({ENDPOINT: "http://c:4317", "TACHOGRAPH_HOOKS": "off"}, False),
        ({ENDPOINT: "http://c:4317", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_the_variables_decide(environment: dict[str, str], on: bool) -> None:
    assert wanted(environment) is on


def test_registering_imports_nothing_of_an_engine_nor_of_an_exporter() -> None:
    code = (
        "import sys; from engine_hooks.adapters.vllm.plugin import register, HOOKS; register(); "
        "heavy = [name for name in sys.modules if name.split('.')[0] in ('vllm', 'torch', 'numpy')]; "
        "sys.exit(str(heavy) if heavy or not HOOKS else 0)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], env={ENDPOINT: "http://127.0.0.1:1"}, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr


def test_registering_never_raises(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def raises() -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setattr(plugin, "hooks", raises)
    plugin.register()
    assert "Tachograph does not record this engine" in caplog.text


# ---- the resource


def test_ranks_of_data_parallelism_are_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "chat")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "engine.recipe=mine,engine.all_reduce=nccl,service.instance.id=no")
    resource = resource_of(config())
    assert resource.service_instance_id.endswith("-dp3")
    assert resource.service_name == "chat"
    assert (resource.engine_package, resource.engine_recipe) == ("tiny", "mine")
    assert resource.engine_tensor_parallel == 2
    assert resource.engine_attributes["data_parallel_rank"] == "3"
    assert resource.engine_attributes["data_parallel"] == "4"
    assert resource.engine_attributes["all_reduce"] == "nccl"
    assert resource.engine_attributes["async_scheduling"] == "false"


def test_what_a_version_does_not_have_is_left_out() -> None:
    resource = resource_of(object())
    assert resource.service_instance_id.endswith("-dp0")
    assert resource.engine_recipe == "no-speculation"
    assert resource.engine_attributes == {"data_parallel_rank": "0"}

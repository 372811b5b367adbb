"""The SGLang plugin set by SGLang's own hook registry, out of its wheel, around classes in the shape of its own."""

import logging
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from collector.conformance.examiner import Examiner
from collector.conformance.listening import listening
from collector.conformance.rules import Severity
from engine_hooks.adapters.sglang import plugin, targets
from tests.fixtures import sglang_fakes as fakes
from tests.fixtures.fake_device import FakeDevice
from tests.fixtures.sglang_fakes import CLASSES, ForwardMode, Req, ScheduleBatch, Scheduler, SpeculativeAlgorithm
from tests.fixtures.sglang_source import source


class Process:
    """What the plugin finds in one process of SGLang."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wheel = source()
        if wheel is None:
            pytest.skip("SGLang's wheel is not there: make sglang-source")
        self._monkeypatch = monkeypatch
        self.parallel = SimpleNamespace(attn_tp_rank=0, attn_cp_rank=0, pp_rank=0, dp_rank=None)
        self._module(targets.CONTEXT).get_parallel = lambda: self.parallel  # type: ignore[attr-defined]
        for method in targets.METHODS:
            if method.owner in CLASSES:
                setattr(self._module(method.module), method.owner, CLASSES[method.owner])
        exec(f"def {targets.SCHEDULER_PROCESS}(work): return work()", self._module(targets.SCHEDULER).__dict__)  # noqa: S102
        registry = self._module(targets.REGISTRY)
        exec(compile(wheel.text(targets.REGISTRY), "hook_registry.py", "exec"), registry.__dict__)  # noqa: S102
        self.registry = registry.HookRegistry

    def _module(self, name: str) -> ModuleType:
        """A module of that name, and the packages above it."""
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            path = ".".join(parts[:end])
            if path not in sys.modules:
                module = ModuleType(path)
                if end < len(parts):
                    module.__path__ = []  # type: ignore[attr-defined]
                self._monkeypatch.setitem(sys.modules, path, module)
                if end > 1:
                    self._monkeypatch.setattr(
                        sys.modules[".".join(parts[: end - 1])], parts[end - 1], module, raising=False
                    )
        return sys.modules[name]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    before = [
        (CLASSES[m.owner], m.name, CLASSES[m.owner].__dict__[m.name]) for m in targets.METHODS if m.owner in CLASSES
    ]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    plugin.HOOKS.clear()
    yield Process(monkeypatch)
    plugin.HOOKS.clear()
    for owner, name, original in before:
        setattr(owner, name, original)


def run_scheduler_process(process: Process, work: Callable[[Scheduler], Any] = lambda _: None) -> Scheduler:
    """What happens below SGLang's function of this name."""
    scheduler: Scheduler = getattr(sys.modules[targets.SCHEDULER], targets.SCHEDULER_PROCESS)(
        lambda: _started(process, work)
    )
    return scheduler


def _started(process: Process, work: Callable[[Scheduler], Any]) -> Scheduler:
    """Plugins first, then a scheduler and its loop."""
    plugin.register()
    process.registry.apply_hooks()
    ports = SimpleNamespace(device=FakeDevice(), overlap=True, algorithm=SpeculativeAlgorithm.DSPARK)
    scheduler = Scheduler(fakes.server_args(), ports)
    work(scheduler)
    return scheduler


def _serve(scheduler: Scheduler) -> None:
    batches = [
        ScheduleBatch([Req(), Req()], ForwardMode.DECODE, SpeculativeAlgorithm.DSPARK) for _ in range(40)
    ]  # fmt: skip
    prefill = ScheduleBatch([Req()], ForwardMode.EXTEND, SpeculativeAlgorithm.DSPARK, extend_num_tokens=64)
    scheduler.run_event_loop([prefill, *batches])


def test_from_plugin_to_collector(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = Examiner(live=True)
    with listening(examiner, 0, 0, lambda: None) as doors:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", doors.grpc_url)
        run_scheduler_process(process, _serve)
    report = examiner.report()
    assert report.executions == 41
    assert [f for f in report.findings if f.rule.severity is Severity.ERROR] == []
    assert set(process.registry._patched) == {
        method.path for method in plugin.HOOKS if method.owner in CLASSES and method not in targets.REPLAYS[1:]
    }


def test_other_processes_are_left_alone(process: Process) -> None:
    plugin.register()
    assert plugin.HOOKS == {}
    assert dict(process.registry._hooks) == {}


@pytest.mark.parametrize("rank", targets.RANKS)
def test_other_ranks_are_left_alone(process: Process, rank: str) -> None:
    setattr(process.parallel, rank, 1)
    run_scheduler_process(process, _serve)
    assert process.registry._patched == {targets.CREATED.path}


@pytest.mark.parametrize(
    "variable",
    [{"TACHOGRAPH_HOOKS": "off"}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}],
    ids=str,
)
def test_switched_off(process: Process, monkeypatch: pytest.MonkeyPatch, variable: dict[str, str]) -> None:
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    run_scheduler_process(process)
    assert plugin.HOOKS == {}


def test_a_name_that_has_moved_is_said(
    process: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(sys.modules[targets.BUDGETS], "HostConfidenceBudgetPlanner")
    with caplog.at_level(logging.WARNING):
        run_scheduler_process(process, _serve)
    (said,) = (record.getMessage() for record in caplog.records if "this version of SGLang" in record.getMessage())
    assert targets.BUDGET.path in said
    assert targets.BUDGET.records in said
    assert targets.RUN.path in process.registry._patched


def test_register_never_raises(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(plugin, "is_scheduler_process", lambda _: True)
    plugin.HOOKS.clear()
    with caplog.at_level(logging.WARNING):
        plugin.register()  # no registry is loaded
    plugin.HOOKS.clear()
    assert "does not record this engine" in caplog.text


def test_a_collector_that_is_away_changes_nothing(process: Process) -> None:
    expected = Scheduler(
        fakes.server_args(), SimpleNamespace(device=FakeDevice(), overlap=True, algorithm=SpeculativeAlgorithm.DSPARK)
    )
    _serve(expected)
    served = run_scheduler_process(process, _serve)
    assert served.told == expected.told

"""The SGLang plugin against SGLang's own source: fails where a name, a parameter or an order has moved.

SGLang does not run without a GPU; its wheel is read as text. `make sglang-source` fetches it.
"""

import ast
import tomllib
from collections.abc import Iterator

import pytest

from engine_hooks.adapters.sglang import targets
from engine_hooks.adapters.sglang.batches import _KINDS
from engine_hooks.adapters.sglang.targets import Method
from tests.fixtures import sglang_fakes
from tests.fixtures.running import ROOT
from tests.fixtures.sglang_source import SglangSource, calls, line_of, parameters
from tests.fixtures.sglang_source import source as fetched


@pytest.fixture
def sglang() -> SglangSource:
    source = fetched()
    if source is None:
        pytest.skip("SGLang's wheel is not there: make sglang-source")
    return source


def _titles(methods: tuple[Method, ...]) -> list[str]:
    return [f"{method.owner}.{method.name}" for method in methods]


@pytest.mark.parametrize("method", targets.METHODS, ids=_titles(targets.METHODS))
def test_wrapped_methods_are_there(sglang: SglangSource, method: Method) -> None:
    function = sglang.method(method.module, method.owner, method.name)
    assert function is not None, f"{method.path} is not in SGLang {sglang.version}"
    assert parameters(function)[: len(method.parameters)] == list(method.parameters)


@pytest.mark.parametrize("owner", targets.READ, ids=[owner for _, owner in targets.READ])
def test_what_is_read_is_there(sglang: SglangSource, owner: tuple[str, str]) -> None:
    missing = set(targets.READ[owner]) - sglang.members(*owner)
    assert not missing, f"{owner} of SGLang {sglang.version} has no {missing}"


def test_modes_ranks_and_settings(sglang: SglangSource) -> None:
    modes = sglang.members("sglang.srt.model_executor.forward_batch_info", "ForwardMode")
    assert set(targets.MODES) <= modes
    assert set(_KINDS) <= set(targets.MODES)
    scheduler = sglang.tree(targets.SCHEDULER)
    assert scheduler is not None
    assert {*targets.RANKS, "dp_rank"} <= set(_read_of_parallel(scheduler))
    assert sglang.members(targets.CONTEXT, "ParallelContext")
    fields = set(_all_fields(sglang))
    assert {*targets.SETTINGS.values(), "served_model_name", "tp_size"} <= fields


def _read_of_parallel(tree: ast.AST) -> Iterator[str]:
    """`x` of every `get_parallel().x`, and of every name that it was given to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call | ast.Name):
            function = node.value.func if isinstance(node.value, ast.Call) else node.value
            if isinstance(function, ast.Name) and function.id in {"get_parallel", "parallel"}:
                yield node.attr


def _all_fields(sglang: SglangSource) -> Iterator[str]:
    modules = ["sglang.srt.arg_groups.arg_utils", *sglang.modules_in("sglang.srt.arg_groups.fields")]
    for module in modules:
        tree = sglang.tree(module)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id


def test_the_registry_is_as_it_is_called(sglang: SglangSource) -> None:
    register = sglang.method(targets.REGISTRY, "HookRegistry", "register")
    assert register is not None
    assert parameters(register) == ["target", "hook", "hook_type"]
    assert sglang.method(targets.REGISTRY, "HookRegistry", "apply_hooks") is not None
    assert "AROUND" in sglang.members(targets.REGISTRY, "HookType")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert groups["sglang.srt.plugins"] == {"tachograph": "engine_hooks.adapters.sglang.plugin:register"}
    assert 'GENERAL_PLUGINS_GROUP = "sglang.srt.plugins"' in sglang.text("sglang.srt.plugins")


def test_plugins_are_loaded_in_the_scheduler_process(sglang: SglangSource) -> None:
    scheduler = sglang.tree(targets.SCHEDULER)
    assert scheduler is not None
    (process,) = (
        node for node in scheduler.body if isinstance(node, ast.FunctionDef) and node.name == targets.SCHEDULER_PROCESS
    )
    assert line_of(process, "load_plugins") < line_of(process, "Scheduler") < line_of(process, "run_event_loop")


def test_the_order_that_the_hooks_rely_on(sglang: SglangSource) -> None:
    for name in ("process_batch_result_decode", "process_batch_result_prefill"):
        process = sglang.method(targets.RESULTS, "SchedulerBatchResultProcessor", name)
        assert process is not None
        assert line_of(process, "synchronize") < line_of(process, targets.OBSERVED.name)
    loop = sglang.method(targets.SCHEDULER, "Scheduler", "event_loop_overlap")
    assert loop is not None
    appended = [line for line, called in calls(loop) if called == "append"]
    assert line_of(loop, "run_batch") < min(appended)
    execute = sglang.method(targets.DECODE_GRAPHS, "DecodeCudaGraphRunner", "execute")
    assert execute is not None
    assert "replay" in {called for _, called in calls(execute)}


def _fakes() -> list[tuple[str, str, str]]:
    return [
        (module, owner, name) for module, owner, name in sglang_fakes.IMITATED if not name.startswith("__")
    ]  # fmt: skip


@pytest.mark.parametrize("imitated", _fakes(), ids=[f"{owner}.{name}" for _, owner, name in _fakes()])
def test_fakes_have_the_signatures_of_what_they_stand_for(sglang: SglangSource, imitated: tuple[str, str, str]) -> None:
    function = sglang.method(*imitated)
    assert function is not None
    fake = sglang_fakes.parameters_of(imitated[1], imitated[2])
    theirs = [*parameters(function), *(argument.arg for argument in function.args.kwonlyargs)]
    assert theirs[: len(fake)] == fake

"""The names that the hooks lean on, held against the source of the versions that are supported.

0.32.0 is the installed one; 0.33.0 is read out of its wheel (there is none for CPU), which `make test-vllm` fetches.
"""

import ast
import zipfile
from collections.abc import Callable

import pytest

from engine_hooks.adapters.vllm import targets
from tests.fixtures.running import ROOT
from tests.vllm.driven import VLLM_PYTHON

WHEELS = ROOT / "build/vllm"
Source = Callable[[str], str]
"""The text of a module by its name."""


def installed() -> Source:
    packages = next(VLLM_PYTHON.parents[1].glob("lib/python3*/site-packages"), None)
    if packages is None or not (packages / "vllm").is_dir():
        pytest.skip("vLLM is not installed: make test-vllm does that")
    return lambda module: next(file for file in map(packages.joinpath, _files(module)) if file.exists()).read_text()


def wheel(version: str) -> Source:
    file = next(WHEELS.glob(f"vllm-{version}-*.whl"), None)
    if file is None:
        pytest.skip(f"the wheel of vLLM {version} is not in {WHEELS}: make test-vllm fetches it")
    archive = zipfile.ZipFile(file)
    names = set(archive.namelist())
    return lambda module: archive.read(next(file for file in _files(module) if file in names)).decode()


def _files(module: str) -> tuple[str, str]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"


@pytest.fixture(params=["0.32.0", "0.33.0"])
def source(request: pytest.FixtureRequest) -> Source:
    return installed() if request.param == "0.32.0" else wheel(request.param)


def members(tree: ast.Module, owner: str) -> set[str]:
    """Methods, properties, fields and `self.` attributes of a class."""
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner)
    names: set[str] = set()
    for node in ast.walk(found):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            places = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {place.id for place in places if isinstance(place, ast.Name)}
            names |= {place.attr for place in places if isinstance(place, ast.Attribute)}
    return names


@pytest.mark.parametrize("method", targets.METHODS, ids=lambda method: method.title)
def test_what_is_wrapped_is_there(source: Source, method: targets.Method) -> None:
    assert method.name in members(ast.parse(source(method.module)), method.owner)


@pytest.mark.parametrize("read", targets.READ.items(), ids=lambda read: read[0][1])
def test_what_is_read_is_there(source: Source, read: tuple[tuple[str, str], tuple[str, ...]]) -> None:
    (module, owner), names = read
    assert set(names) <= members(ast.parse(source(module)), owner)


def test_arguments_have_the_names_and_places_that_are_read(source: Source) -> None:
    for method, arguments in {
        targets.UPDATE: ["self", "scheduler_output", "model_runner_output"],
        targets.FULL_GRAPH: ["self", "desc"],
        targets.BUDGET: ["self", "num_tokens_per_req"],
    }.items():
        tree = ast.parse(source(method.module))
        owner = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == method.owner)
        function = next(node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == method.name)
        assert [argument.arg for argument in function.args.args][: len(arguments)] == arguments


def test_tokens_are_cut_after_they_were_read(source: Source) -> None:
    """`update_from_output` is why `sampled_token_ids` are read before it: it stops inside the runner's own lists."""
    assert "del new_token_ids[" in source(targets.SCHEDULER)

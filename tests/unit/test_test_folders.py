"""Every folder of tests is run by `make test` or `make test-vllm`."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_folder_of_tests_is_forgotten() -> None:
    collected = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"]
    folders = {str(file.parent.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py")}
    assert folders == {*collected, "tests/vllm"}
    assert "$(BIN)/pytest tests/vllm" in (ROOT / "Makefile").read_text()

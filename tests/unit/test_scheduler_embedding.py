"""The page on embedding: its example runs, with nothing but the standard library, and its case gives its answer."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine_hooks.commands.estimate import estimate

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "embedding.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


class SmallEngine:
    """Eight lanes on a device where speculation pays: three of each lane's drafts are accepted."""

    lanes = 8
    grammar_lanes = 0

    def __init__(self) -> None:
        self.now_ns = 0
        self.graphs: list[str] = []

    def clock_ns(self) -> int:
        return self.now_ns

    def run(self, graph: str, drafts: Any, *, wait: bool) -> SimpleNamespace:
        assert not wait
        self.graphs.append(graph)
        gpu_ns = 14_000_000 if graph == "P128" else 6_500_000
        submitted_ns = self.now_ns
        self.now_ns += gpu_ns + 600_000
        return SimpleNamespace(
            gpu_time_ns=gpu_ns,
            wall_time_ns=gpu_ns + 300_000,
            queue_depth=0,
            submitted_ns=submitted_ns,
            observed_ns=self.now_ns,
            drafted=[drafts.full] * self.lanes,
            accepted=[min(3, drafts.full)] * self.lanes,
        )


def test_the_example_runs_and_chooses_the_better_graph() -> None:
    namespace: dict[str, Any] = {}
    exec(compile(block("python"), "docs/embedding.md", "exec"), namespace)  # noqa: S102 - our own page
    engine = SmallEngine()
    scheduler = namespace["serve"](engine, 200)
    assert engine.graphs[:6] == ["decode"] * 3 + ["P128"] * 3
    assert engine.graphs[-100:] == ["P128"] * 100
    assert scheduler.acceptance.by_depth[2] > 0.6 > scheduler.acceptance.by_depth[3]


def test_embedding_loads_nothing_beyond_the_standard_library() -> None:
    check = (
        "import sys; before = set(sys.modules); "
        + "; ".join(line for line in block("python").splitlines() if line.startswith("from "))
        + "; loaded = {name.split('.')[0] for name in set(sys.modules) - before}"
        "; print(sorted(loaded - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['engine_hooks']"


def test_the_case_gives_the_answer_on_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases.json"
    file.write_text(block("json"))
    estimate(file, "exposed_mean", as_json=True)
    printed = capsys.readouterr().out.strip()
    assert printed == json.dumps([{"case": "one-round", "check": 0, "estimate_ns": 29_000_000}])
    assert printed in PAGE

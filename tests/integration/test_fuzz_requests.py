"""The fuzzer of request bodies, for ten seconds, and that it would find something."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.running import ROOT

pytest.importorskip("atheris", reason="atheris has no wheel for this machine")

MADE_TO_FAIL = """
import sys
from tests.fuzz import fuzz_requests

def broken(request):
    outcome = verdict(request)
    return outcome._replace(stored=0) if outcome.stored else outcome

verdict, fuzz_requests.verdict_of = fuzz_requests.verdict_of, broken
for body in fuzz_requests.seeds():
    fuzz_requests.read(body)
"""


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=90, check=False
    )


def test_ten_seconds_of_bodies(tmp_path: Path) -> None:
    done = run("-m", "tests.fuzz.fuzz_requests", "--seconds", "10", "--found", str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert "stat::number_of_executed_units" in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_wrong_verdict_is_found() -> None:
    done = run("-c", MADE_TO_FAIL)
    assert "VerdictsDifferError" in done.stderr

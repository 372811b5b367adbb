"""Ctrl-C while the command line starts: no traceback, and the exit code of an interrupted command."""

import signal
import subprocess
import sys

import pytest

import tachograph
from tests.fixtures.running import ROOT

WHILE_LIBRARIES_LOAD = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
import tachograph
"""
AFTERWARDS = "import tachograph; raise KeyboardInterrupt"
OTHER_FAULT = "import tachograph; raise RuntimeError('seen')"


def ended(code: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stderr


def test_ctrl_c_at_the_start_is_silent() -> None:
    assert ended(WHILE_LIBRARIES_LOAD) == (130, "")
    assert ended(AFTERWARDS) == (-signal.SIGINT, "")  # which a shell calls 130
    code, said = ended(OTHER_FAULT)
    assert code == 1
    assert said.endswith("RuntimeError: seen\n")


def test_ctrl_c_while_the_commands_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tachograph, "application", interrupted)
    with pytest.raises(SystemExit) as ending:
        tachograph.main()
    assert ending.value.code == 130

"""What `tachograph up` says of a part that ended."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from collector.supervision import Part, PartFailedError, PartSettingError, Supervisor, ending_of, reason_in

START_UP = '{"data_dir": "/data", "event": "collecting", "level": "info", "timestamp": "2026-11-30T04:00:00Z"}'


@pytest.mark.parametrize(
    ("returncode", "told"),
    [
        (0, "ended (0)"),
        (3, "ended (3)"),
        (-9, "was killed by signal 9 (SIGKILL)"),
        (-15, "was killed by signal 15 (SIGTERM)"),
        (-60, "was killed by signal 60"),
    ],
)
def test_how_it_ended(returncode: int, told: str) -> None:
    assert ending_of(returncode) == told


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], ""),
        ([START_UP], ""),
        (["gpu-1: drained_share, sending to http://127.0.0.1:4317; Ctrl-C ends it"], ""),
        (["tachograph: the disk is full: free some"], "the disk is full: free some"),
        (["tachograph: the disk is full", START_UP], "the disk is full"),
        (["tachograph: first", "tachograph: second"], "second"),
        (['{"event": "cannot store", "error": "no space", "level": "error"}', START_UP], "cannot store: no space"),
        (['{"event": "slow", "level": "warning"}', "[1, 2]", "{broken"], ""),
        (["Traceback (most recent call last):", "  File x", "KeyError: 'a'"], "KeyError: 'a'"),
        (["tachograph: long ago", *[START_UP] * 60], ""),
    ],
)
def test_only_an_error_is_a_reason(lines: list[str], reason: str) -> None:
    assert reason_in("\n".join(lines)) == reason


def test_a_part_that_was_killed(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path, {}, cast("Any", threading.Event()))
    part = Part("collector", ["collect"])
    supervisor.log_of(part).write_text(f"{START_UP}\n")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        supervisor.running.append((part, process))
        supervisor.check()
        process.send_signal(signal.SIGKILL)
        process.wait()
        with pytest.raises(PartFailedError) as failed:
            supervisor.check()
    assert str(failed.value) == f"the collector was killed by signal 9 (SIGKILL); see {tmp_path / 'collector.log'}"


@pytest.mark.parametrize(
    ("code", "log", "kind", "told"),
    [
        (2, "tachograph: no table x keeps rows\n", PartSettingError, "no table x keeps rows"),
        (2, "", PartFailedError, "the collector ended (2); see "),
        (1, "tachograph: the disk is full\n", PartFailedError, "the collector ended (1): the disk is full; see "),
    ],
    ids=["a wrong setting", "without a word", "another fault"],
)
def test_a_part_that_ended_by_itself(tmp_path: Path, code: int, log: str, kind: type[Exception], told: str) -> None:
    supervisor = Supervisor(tmp_path, {}, cast("Any", threading.Event()))
    part = Part("collector", ["collect"])
    supervisor.log_of(part).write_text(f"{START_UP}\n{log}")
    with subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"]) as process:
        process.wait()
    supervisor.running.append((part, process))
    with pytest.raises(PartFailedError) as failed:
        supervisor.check()
    assert type(failed.value) is kind
    assert str(failed.value).removesuffix(str(tmp_path / "collector.log")) == told

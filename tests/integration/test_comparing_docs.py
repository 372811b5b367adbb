"""The worked example of docs/comparing.md, run as it stands there."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.fixtures.running import ROOT, Addresses, running_collector

PAGE = ROOT / "docs/comparing.md"


def run_as_written(at: Addresses, folder: Path) -> str:
    """The page's commands in a shell that has `tachograph`, what they print."""
    (commands,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    command = folder / "tachograph"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tachograph "$@"\n')
    command.chmod(0o755)
    environment = at.environment() | {"COLUMNS": "200", "PATH": f"{folder}:/usr/bin:/bin"}
    ran = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_worked_example_runs(tmp_path: Path) -> None:
    with running_collector(tmp_path / "data") as at:
        printed = run_as_written(at, tmp_path)
    assert "| host | recipe | tokens_per_s, exposed_mean -> drained_share (stuck cells) |" in printed
    told = json.loads(printed[printed.index("\n{") :])
    (group,) = told["groups"]
    assert (group["host"], group["recipe"], group["pairs"]) == ("simulated", "frank2 main", 6)
    assert group["verdict"] in ("better", "undetermined")
    assert set(told["labels_apart"]) == {"package", "cost_model"}
    assert any("order of time" in remark for remark in told["remarks"])

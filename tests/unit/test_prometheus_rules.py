"""The rules that we ship for a Prometheus: of metrics that there are, and each fires where it is to, and only there."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.conftest import ROOT

FILE: Final = ROOT / "docs" / "deploy" / "prometheus-rules.yml"
PROMTOOL: Final = shutil.which("promtool") or shutil.which(str(ROOT / ".venv" / "bin" / "promtool"))
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: make promtool")
ONE: Final = 'job="tachograph", instance="tacho:4318"'
FIRING: Final[dict[str, dict[str, str]]] = {
    "TachographCollectorDown": {f"up{{{ONE}}}": "0x20"},
    "TachographNotStoring": {f"tachograph_storing{{{ONE}}}": "0x20"},
    "TachographSpoolFilling": {
        f"tachograph_spool_bytes{{{ONE}}}": "51x20",
        f"tachograph_spool_limit_bytes{{{ONE}}}": "100x20",
    },
    "TachographTurnedAway": {
        f"up{{{ONE}}}": "1x20",
        f'tachograph_requests_turned_away_total{{{ONE}, reason="disk_free"}}': "_x8 1x12",
    },
    "TachographRefused": {f'tachograph_executions_refused_total{{{ONE}, reason="no name"}}': "3x6 4x14"},
    "TachographLookFailing": {f'tachograph_looks_failing_seconds{{{ONE}, look="judging"}}': "0+60x20"},
    "TachographHostClock": {f'tachograph_host_clock_offset_seconds{{{ONE}, host="node-7"}}': "-40x20"},
}
"""Metrics by the minute with which each rule fires after ten."""
WELL: Final = {
    f"up{{{ONE}}}": "1x20",
    f"tachograph_storing{{{ONE}}}": "1x9 0x2 1x9",
    f"tachograph_spool_bytes{{{ONE}}}": "50x20",
    f"tachograph_spool_limit_bytes{{{ONE}}}": "100x20",
    f'tachograph_requests_turned_away_total{{{ONE}, reason="disk_free"}}': "7x20",
    f'tachograph_executions_refused_total{{{ONE}, reason="no name"}}': "3x20",
    f'tachograph_looks_failing_seconds{{{ONE}, look="judging"}}': "0x8 30+60x2 0x9",
}
NEWLY_SCRAPED: Final = {name: f"_x8 {values.split()[0]}" for name, values in WELL.items()}
"""A collector that has run for weeks, of a Prometheus that has just been set up."""
UNBOUNDED: Final = {f"tachograph_spool_bytes{{{ONE}}}": "51x20", f"tachograph_spool_limit_bytes{{{ONE}}}": "0x20"}


def rules() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]}


def promtool(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(PROMTOOL), *arguments], capture_output=True, text=True, timeout=120, check=False)


def named_after_ten_minutes(series: dict[str, str], tmp_path: Path) -> set[str]:
    """The rules that fire."""
    minutes = 10
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": alert}],
        }
        for alert in rules()
    ]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": "1m", "tests": tests}))
    said = promtool("test", "rules", str(file))
    fired = set(re.findall(r"alertname: (\w+), time: 10m", said.stdout + said.stderr))
    assert (said.returncode == 0) == (not fired), said.stdout + said.stderr
    return fired


def test_metrics_are_those_that_the_collector_has() -> None:
    there = set(re.findall(r"^\| `(tachograph_\w+)` \|", (ROOT / "docs" / "operating.md").read_text(), re.MULTILINE))
    for rule in rules().values():
        asked = set(re.findall(r"tachograph_\w+", re.sub(r'"[^"]*"', "", rule["expr"])))
        assert asked <= there
        assert asked or "up{" in rule["expr"]


def test_each_says_what_it_is_and_how_bad() -> None:
    for rule in rules().values():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}


@needs_promtool
def test_prometheus_takes_them() -> None:
    said = promtool("check", "rules", str(FILE))
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{len(rules())} rules found" in said.stdout


@needs_promtool
@pytest.mark.parametrize("alert", FIRING)
def test_each_fires_where_it_is_to(alert: str, tmp_path: Path) -> None:
    assert named_after_ten_minutes(FIRING[alert], tmp_path) == {alert}


@needs_promtool
@pytest.mark.parametrize("series", [WELL, UNBOUNDED, NEWLY_SCRAPED], ids=["well", "without a bound", "newly scraped"])
def test_none_fires_where_all_is_well(series: dict[str, str], tmp_path: Path) -> None:
    assert named_after_ten_minutes(series, tmp_path) == set()


def test_every_rule_is_tested_here() -> None:
    assert rules().keys() == FIRING.keys()

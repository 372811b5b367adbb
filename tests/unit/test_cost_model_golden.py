"""The golden cases, through the models and through `tachograph estimate`."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine_hooks.commands.estimate import estimate, replay_case
from engine_hooks.commands.golden_cases import GoldenFileError
from engine_hooks.cost_model.errors import UnknownCostModelError
from engine_hooks.cost_model.registry import cost_model_named

GOLDEN = Path(__file__).parents[3] / "shared" / "cases" / "cost_model" / "golden.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["cases"] if GOLDEN.exists() else []


@pytest.mark.skipif(not CASES, reason=f"golden cases are not at {GOLDEN}")
@pytest.mark.parametrize("model", ["exposed_mean", "drained_share"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_case(case: dict[str, Any], model: str) -> None:
    cost_model = cost_model_named(model)
    estimates = replay_case(case, cost_model)
    for check, checked in zip(case["checks"], estimates, strict=True):
        expected = check.get(f"{model}_ns")
        if expected is not None:
            assert checked["estimate_ns"] is not None
            assert abs(checked["estimate_ns"] - expected) <= 1  # A13
        if "expired" in check:
            believed = cost_model.estimate(check["graph"], check["now_ns"])
            assert believed is not None
            assert believed.expired(check["now_ns"]) == check["expired"]


@pytest.mark.skipif(not CASES, reason=f"golden cases are not at {GOLDEN}")
def test_estimate_prints_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    estimate(GOLDEN, "exposed_mean", as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert [(p["case"], p["check"]) for p in printed] == [(c["id"], n) for c in CASES for n in range(len(c["checks"]))]
    estimate(GOLDEN, "exposed_mean")
    assert len(capsys.readouterr().out.splitlines()) == len(printed)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", '"cases"'),
        ('{"cases": 1}', "not an array"),
        ('{"cases": [1]}', "case number 0, from 0 on: it should be an object, not 1"),
        (
            '{"cases": [{"id": "x", "events": [{}], "checks": [{"after_event": 0}]}]}',
            "case x: event 0: graph is missing",
        ),
        ('{"cases": [{"id": "x", "events": [], "checks": [{"after_event": 0}]}]}', "check 0: graph is missing"),
        (
            '{"cases": [{"id": "x", "events": [{}], "checks": [{"after_event": -1}]}]}',
            "case x: event 0: graph is missing",
        ),
        (
            '{"cases": [{"id": "x", "events": [{"graph": "P", "gpu_ns": -1, "wall_ns": 1}], "checks": [{"after_event": 0}]}]}',
            "case x: event 0: gpu_ns should be greater than or equal to 0, not -1",
        ),
    ],
)
def test_a_broken_file_is_one_clear_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "cases.json"
    file.write_text(text)
    with pytest.raises(GoldenFileError) as raised:
        estimate(file)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


EVENT: dict[str, Any] = {
    "graph": "P",
    "gpu_ns": 1,
    "wall_ns": 1,
    "queued": False,
    "needs_completion_feedback": False,
    "purpose": "ordinary",
    "now_ns": 1,
}


@pytest.mark.parametrize(
    ("event", "check", "said"),
    [
        ({"gpu_ns": float("nan")}, {}, "event 0: gpu_ns should be a finite number, not NaN"),
        ({"wall_ns": 1.5}, {}, "event 0: wall_ns should be a whole number, not 1.5"),
        ({"wall_ns": "x" * 99}, {}, f'event 0: wall_ns should be a whole number, not "{"x" * 59}…'),
        ({"wall_ns": -1}, {}, "event 0: wall_ns should be greater than or equal to 0, not -1"),
        ({"now_ns": 10**400}, {}, "event 0: now_ns should be less than 9223372036854775808, not 1000000000"),
        (
            {"purpose": "oops"},
            {},
            "event 0: purpose should be 'ordinary', 'refresh' or 'acceptance_probe', not \"oops\"",
        ),
        ({"queued": 0}, {}, "event 0: queued should be a valid boolean, not 0"),
        ({"graph": None}, {}, "event 0: graph should be a valid string, not null"),
        ({}, {"after_event": 5}, "check 0: there is no event 5 to come after: the last is 0, from 0 on"),
        ({}, {"after_event": -1}, "check 0: there is no event -1 to come after: the last is 0, from 0 on"),
    ],
)
def test_what_is_wrong_with_a_case_is_said_in_words(
    tmp_path: Path, event: dict[str, Any], check: dict[str, Any], said: str
) -> None:
    file = tmp_path / "cases.json"
    checks = [{"after_event": 0, "graph": "P", "now_ns": 1} | check]
    file.write_text(json.dumps({"cases": [{"id": "one-round", "events": [EVENT | event], "checks": checks}]}))
    with pytest.raises(GoldenFileError) as raised:
        estimate(file)
    assert str(raised.value).startswith(f"{file}: case one-round: {said}")
    assert "Error" not in str(raised.value)
    assert str(raised.value).endswith("; see docs/embedding.md for the format")


def test_a_missing_file_and_an_unknown_model_are_clear_lines(tmp_path: Path) -> None:
    with pytest.raises(GoldenFileError, match="No such file"):
        estimate(tmp_path / "none.json")
    file = tmp_path / "cases.json"
    file.write_text('{"cases": [{"id": "x", "events": [], "checks": []}]}')
    with pytest.raises(UnknownCostModelError, match="exposed_mean"):
        estimate(file, "mean")

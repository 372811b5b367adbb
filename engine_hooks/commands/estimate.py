"""`tachograph estimate`: replays events through a cost model, for authors who port one to another language."""

import json
from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer

from engine_hooks.commands.golden_cases import Event, GoldenFileError, case_of
from engine_hooks.cost_model.model import CostModel, Measurement
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named


class CheckedEstimate(TypedDict):
    """One check of one case; `estimate_ns` is None for a graph never measured."""

    case: str
    check: int
    estimate_ns: int | None


def estimate(
    file: Annotated[Path, typer.Argument(help="Cases with events and checks, in the golden cases' JSON format.")],
    model: Annotated[str, typer.Option(help=f"One of {', '.join(COST_MODELS)}.")] = "drained_share",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> None:
    """Replay each case of FILE through a cost model and print its estimate at every check."""
    estimates = [checked for number, case in enumerate(_cases(file)) for checked in _replay(file, number, case, model)]
    if as_json:
        typer.echo(json.dumps(estimates))
        return
    for checked in estimates:
        typer.echo(f"{checked['case']}  check {checked['check']}  {checked['estimate_ns']} ns")


def _cases(file: Path) -> list[Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        cases = content["cases"]
    except OSError as error:
        raise GoldenFileError(f"{file}: {error.strerror}; give a file of cases") from error
    except ValueError as error:
        raise GoldenFileError(f"{file}: not JSON: {error}") from error
    except (KeyError, TypeError) as error:
        raise GoldenFileError(f'{file}: no "cases" at its top; see docs/embedding.md for the format') from error
    if not isinstance(cases, list):
        raise GoldenFileError(f'{file}: "cases" is not an array; see docs/embedding.md for the format')
    return cases


def _replay(file: Path, number: int, case: Any, model: str) -> list[CheckedEstimate]:
    cost_model = cost_model_named(model)
    name = case["id"] if isinstance(case, dict) and isinstance(case.get("id"), str) else f"number {number}, from 0 on"
    try:
        return replay_case(case, cost_model)
    except GoldenFileError as error:
        raise GoldenFileError(f"{file}: case {name}: {error}; see docs/embedding.md for the format") from error


def replay_case(case: Any, model: CostModel) -> list[CheckedEstimate]:
    """The estimates of one case at its checks, each taken right after event `after_event`.

    Args:
        case: The case as `json.loads` gives it.
        model: A new one.

    Raises:
        GoldenFileError: it is not in the format; the text says where in the case, and what.
    """
    read = case_of(case)
    checks: list[CheckedEstimate] = []
    done = 0
    for number, check in sorted(enumerate(read.checks), key=lambda pair: pair[1].after_event):
        for event in read.events[done : check.after_event + 1]:
            model.record(_measurement(event))
        done = max(done, check.after_event + 1)
        believed = model.estimate(check.graph, check.now_ns)
        checks.append({"case": read.id, "check": number, "estimate_ns": believed and believed.total_ns})
    return sorted(checks, key=lambda checked: checked["check"])


def _measurement(event: Event) -> Measurement:
    return Measurement(
        graph=event.graph,
        gpu_time_ns=event.gpu_ns,
        wall_time_ns=event.wall_ns,
        drained=not event.queued,
        completion_feedback=event.needs_completion_feedback,
        purpose=event.purpose,
        now_ns=event.now_ns,
    )

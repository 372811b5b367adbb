"""What the doctor found, for a terminal or a script."""

import json
from collections.abc import Iterable
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from collector.doctor.check import Check, Verdict
from engine_hooks.commands.terminal import folding

_STYLES: Final = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.FAULT: "bold red"}


def print_table(checks: Iterable[Check], console: Console) -> None:
    """One row for each check: verdict, what was found, what to do."""
    table = Table("", "check", "found", "what to do", box=box.SIMPLE, pad_edge=False)
    for check in checks:
        verdict = Text(check.verdict, style=_STYLES[check.verdict])
        table.add_row(verdict, check.name, Text(check.finding), Text(check.advice))
    console.print(folding(table))


def as_json(checks: Iterable[Check]) -> str:
    """One JSON object: the worst verdict, and every check."""
    listed = list(checks)
    return json.dumps({"verdict": worst(listed), "checks": [check._asdict() for check in listed]}, indent=2)


def worst(checks: Iterable[Check]) -> Verdict:
    """The gravest verdict among them."""
    found = {check.verdict for check in checks}
    return next((verdict for verdict in (Verdict.FAULT, Verdict.WARNING) if verdict in found), Verdict.OK)

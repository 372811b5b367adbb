"""What conformance found, for a terminal or a script."""

import json
from typing import Final

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from collector.conformance.examiner import Report
from collector.conformance.findings import Finding
from collector.conformance.rules import Severity
from engine_hooks.commands.counting import counted
from engine_hooks.commands.terminal import folding

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}


def print_report(report: Report, console: Console) -> None:
    """The findings, worst first, and what was looked at."""
    if report.findings:
        console.print(folding(_table(report.findings)))
    console.print(Text(summary(report)), soft_wrap=True)


def _table(findings: tuple[Finding, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("rule", no_wrap=True)
    table.add_column("times", justify="right", no_wrap=True)
    table.add_column("what, for example, and what to do", overflow="fold")
    for finding in findings:
        rule = finding.rule
        severity = Text(rule.severity, style=_STYLES[rule.severity])
        table.add_row(severity, rule.id, f"{finding.times:,}", _told(finding))
    return table


def _told(finding: Finding) -> Group:
    rule, example = finding.rule, finding.example
    lines = [
        Text(rule.sentence, style="bold"),
        Text(": ".join(filter(None, (finding.subject, example.value)))),
        Text(example.span, style="dim"),
        Text(f"→ {rule.mend} ({rule.section})"),
    ]
    return Group(*(line for line in lines if line), Padding(Text(""), 0))


def summary(report: Report) -> str:
    """One line on what was looked at and what came out."""
    errors, warnings = counts(report)
    looked = (
        f"{counted(report.executions, 'graph execution')} of {counted(report.instances, 'engine run')} "
        f"in {counted(report.requests, 'request')}"
    )
    others = f", {report.other_spans:,} other spans" if report.other_spans else ""
    refused = f", {report.refused:,} refused" if report.refused else ""
    kept = "conforms" if report.executions else "nothing to judge"
    verdict = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}" if report.findings else kept
    return f"{looked}{others}{refused}: {verdict}"


def counts(report: Report) -> tuple[int, int]:
    """How many findings are errors, and how many warnings."""
    errors = sum(finding.rule.severity is Severity.ERROR for finding in report.findings)
    return errors, len(report.findings) - errors


def as_json(report: Report) -> str:
    """One JSON object: what was looked at, and every finding."""
    errors, warnings = counts(report)
    told = report._asdict() | {
        "errors": errors,
        "warnings": warnings,
        "findings": [_finding_as_json(finding) for finding in report.findings],
    }
    return json.dumps(told, indent=2)


def _finding_as_json(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule.id,
        "severity": finding.rule.severity,
        "sentence": finding.rule.sentence,
        "subject": finding.subject,
        "count": finding.times,
        "example": finding.example._asdict(),
        "mend": finding.rule.mend,
        "section": finding.rule.section,
    }

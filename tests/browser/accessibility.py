"""What axe-core finds on a page, and what of it no page can mend."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Page

from tests.browser.driven import ROOT

AXE = ROOT / ".venv" / "share" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS = ["color-contrast"]
"""What another scheme can break."""
GRAVE = frozenset({"serious", "critical"})


class Violation(NamedTuple):
    """One element that breaks a rule gravely."""

    rule: str
    selector: str
    html: str
    why: str


class Foreign(NamedTuple):
    """What elements of Streamlit or Vega do, and no page can mend."""

    rule: str
    within: str
    """A CSS selector that the element, or an ancestor, matches."""
    reason: str


FOREIGN: Sequence[Foreign] = (
    Foreign("svg-img-alt", ".zoom_brush", "the rectangle that Vega-Lite draws while one drags; it takes no name"),
    Foreign("svg-img-alt", ".zoom_brush_bg", "its background, likewise"),
)
"""Each names one rule and one element."""


def violations(page: Page, rules: Sequence[str] = RULES, script: Path = AXE) -> list[Violation]:
    """Every serious or critical one that is ours to mend.

    Args:
        page: Where.
        rules: Tags of rules, or names of them.
        script: Of axe-core.
    """
    if not page.evaluate("() => !!window.axe"):
        page.evaluate(script.read_text(encoding="utf-8"))
    found = page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']}).then(result => result.violations)",
        list(rules),
    )
    return [one for one in grave(found) if not is_foreign(page, one)]


def grave(found: list[dict[str, Any]]) -> Iterator[Violation]:
    """axe's answer, element by element."""
    for rule in found:
        if rule["impact"] in GRAVE:
            for node in rule["nodes"]:
                target = " ".join(str(part) for part in node["target"])
                yield Violation(rule["id"], target, node["html"][:200], node["failureSummary"])


def is_foreign(page: Page, one: Violation) -> bool:
    """Whether the element is on the list."""
    return any(
        foreign.rule == one.rule
        and page.evaluate(
            "([at, within]) => !!document.querySelector(at)?.closest(within)", [one.selector, foreign.within]
        )
        for foreign in FOREIGN
    )

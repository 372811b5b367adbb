"""What the pages say of settings and flags: each setting as it is, and no flag that there is not.

That every setting they name is one, test_unknown_settings says.
"""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from tachograph import application
from tests.conftest import ROOT
from tests.fixtures.settings_page import page

PAGES: Final = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
CODE: Final = re.compile(r"^    +(?:.*[|;] *)?(tachograph .*)|`(tachograph [^`]+)`", re.MULTILINE)
OF_OURS: Final = {"--help", "-h"}


def test_the_page_of_settings_has_each_as_it_is() -> None:
    """Written anew by `python -m tests.fixtures.settings_page > docs/settings.md`."""
    assert (ROOT / "docs" / "settings.md").read_text() == page()


@pytest.mark.parametrize(
    ("setting", "bounds"),
    [
        ("ALERT_REPEAT_S", "At least 60."),
        ("ALERT_INTERVAL_S", "From 1 to 3600."),
        ("OTLP_HTTP_PORT", "From 1 to 65535."),
        ("SAMPLING_SHARE", "From 0 to 1."),
    ],
)
def test_the_page_tells_what_a_number_may_be(setting: str, bounds: str) -> None:
    (row,) = (line for line in page().splitlines() if line.startswith(f"| `TACHOGRAPH_{setting}`"))
    assert row.endswith(f"{bounds} |")


def called(path: Path) -> Iterator[str]:
    """The calls of `tachograph` that a page shows, with what they go on with on the next line, and without comments."""
    text = path.read_text().replace("\\\n", " ")
    for found in CODE.finditer(text):
        yield re.split(r"\s#|[|;&>]", found[1] or found[2])[0]


def strange_flags(call: str, command: Any) -> list[str]:
    """Flags in a call that its command does not have."""
    words = call.split()[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} | OF_OURS
    flags = [word.partition("=")[0] for word in takewhile(lambda word: word != "--", words) if word.startswith("--")]
    return [flag for flag in flags if flag.rstrip(".,:)") not in known]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_flag_in_a_call_that_a_page_shows_is_one(path: Path) -> None:
    command = typer.main.get_command(application())
    assert {call: strange for call in called(path) if (strange := strange_flags(call, command))} == {}


def test_the_pages_show_many_calls() -> None:
    assert sum("--" in call for path in PAGES for call in called(path)) > 60


def test_a_flag_that_there_is_not_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "    tachograph alerts list --jsno   # so\n`tachograph doctor --json` and `tachograph nothing`\n"
    )
    command = typer.main.get_command(application())
    assert [strange_flags(call, command) for call in called(tmp_path / "page.md")] == [["--jsno"], [], []]

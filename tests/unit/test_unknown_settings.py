"""Names that look like settings and are none, and lines of `.env` that set nothing: said once, and no failure."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from collector.unknown_settings import ELSEWHERE, PREFIX, SAID, TESTS, is_unknown, warnings_of
from tachograph import Settings, environment_of
from tests.conftest import ROOT

NAMES = frozenset(Settings.model_fields)
KNOWN = {f"{PREFIX}{name.upper()}" for name in NAMES}
ROOMS = ("engine_hooks", "collector", "queries", "dashboards")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".env"


def test_what_is_known_is_passed_over(file: Path) -> None:
    file.write_text("# a comment\n\nexport TACHOGRAPH_SAMPLING=true\nOTHER=1\nTACHOGRAPH_RETENTION='a=1,\nb=2'\n")
    environment = dict.fromkeys(
        (*KNOWN, *ELSEWHERE - {SAID}, "TACHOGRAPH_TEST_SEED", "tachograph_sampling", "PATH"), "1"
    )
    assert list(warnings_of(environment, file, NAMES)) == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("TACHOGRAPH_SAMPLNG", ": did you mean TACHOGRAPH_SAMPLING?"),
        ("TACHOGRAPH_DATADIR", ": did you mean TACHOGRAPH_DATA_DIR?"),
        ("tachograph_clickhouse_uri", ": did you mean TACHOGRAPH_CLICKHOUSE_URL?"),
        ("TACHOGRAPH_QQQ", ""),
        ("TACHOGRAPH_", ""),
    ],
)
def test_a_name_that_no_command_knows_is_said_with_the_nearest(name: str, near: str, file: Path) -> None:
    said = f"{name} is no setting, and has no effect{near}"
    assert list(warnings_of({name: "secret"}, file, NAMES)) == [said]
    file.write_text(f"# first\n\n{name}=secret\n")
    assert list(warnings_of({}, file, NAMES)) == [f"{file}, line 3: {said}"]
    assert len(list(warnings_of({name: "secret"}, file, NAMES))) == 1, "in both places: once"
    assert list(warnings_of({name: "secret", SAID: "1"}, file, NAMES)) == []


def test_a_line_that_is_none_is_said_with_its_place_and_without_its_text(file: Path) -> None:
    file.write_text("TACHOGRAPH_SAMPLING=true\n\n\nsecret NONSENSE LINE\n# fine\nA='1\n2'\nTACHOGRAPH_RETENTION\n")
    assert list(warnings_of({}, file, NAMES)) == [
        f"{file}, line {number}: no NAME=VALUE, and no comment; it sets nothing" for number in (4, 8)
    ]


def test_every_name_that_the_code_and_the_pages_speak_of_is_known() -> None:
    texts = [path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    texts += [
        path.read_text() for path in (ROOT / "docs").rglob("*") if path.suffix in {".md", ".yaml", ".xml", ".service"}
    ]
    texts += [(ROOT / name).read_text() for name in ("README.md", "docs/deploy/environment", "tachograph.py")]
    names = {name for text in texts for name in re.findall(r"TACHOGRAPH_[A-Z0-9_]+", text)}
    assert len(names) > 30
    assert {name for name in names if is_unknown(name, KNOWN) and name != TESTS} == set()


def test_the_parts_of_up_do_not_say_it_again() -> None:
    assert SAID in environment_of(Settings(_env_file=None))


def test_a_command_warns_and_goes_on(file: Path, tmp_path: Path) -> None:
    """Beside its output, never in it."""
    file.write_text("TACHOGRAPH_SAMPLNG=true\nNONSENSE LINE\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    command = [sys.executable, "-P", "-m", "tachograph", "query", "--format", "json"]
    asked = subprocess.run(
        command,
        cwd=tmp_path,
        env=kept | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert asked.returncode == 0
    assert json.loads(asked.stdout)
    assert asked.stderr.splitlines() == [
        "tachograph: warning: .env, line 2: no NAME=VALUE, and no comment; it sets nothing",
        "tachograph: warning: .env, line 1: TACHOGRAPH_SAMPLNG is no setting, and has no effect: "
        "did you mean TACHOGRAPH_SAMPLING?",
    ]

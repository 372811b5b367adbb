"""Standard output that cannot be written is told in one line, whatever the command, and is no defect of ours."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FULL = "standard output cannot be written: no space left on device"
CLOSED = "standard output cannot be written: it is closed"
THEN = """
import sys, tachograph
def main(command):
    tachograph.application = lambda: command
    tachograph.main()
"""
LITTLE = "main(lambda: print('little'))"
MUCH = "main(lambda: sys.stdout.buffer.write(b'much' * 10_000_000))"
OWN_CODE = "main(lambda: sys.exit(5))"
ANOTHER_FILE = "main(lambda: open('/dev/full', 'w').write('x' * 100_000))"


def run_by_shell(arguments: list[str], redirected: str) -> tuple[int, str]:
    """The exit code, and what stands on standard error."""
    ran = subprocess.run(
        ["sh", "-c", f'"$0" "$@" {redirected}', sys.executable, *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=180,
        check=False,
    )
    return ran.returncode, ran.stderr


@pytest.mark.parametrize("arguments", [["query"], ["--help"]], ids=["query", "help"])
@pytest.mark.parametrize(("redirected", "told"), [(">/dev/full", FULL), (">&-", CLOSED)], ids=["full", "closed"])
def test_commands(arguments: list[str], redirected: str, told: str) -> None:
    assert run_by_shell(["-m", "tachograph", *arguments], redirected) == (74, f"tachograph: {told}\n")


@pytest.mark.parametrize(
    ("command", "redirected", "result"),
    [
        (LITTLE, ">/dev/full", (74, f"tachograph: {FULL}\n")),
        (MUCH, ">/dev/full", (74, f"tachograph: {FULL}\n")),
        (MUCH, "| head -c 1 >/dev/null", (0, "")),
        (LITTLE, ">/dev/null", (0, "")),
        # Whoever says nothing needs nobody who listens.
        (OWN_CODE, ">&-", (5, "")),
        (OWN_CODE, ">/dev/full", (5, "")),
    ],
    ids=["little", "much", "the reader went away", "written", "closed and not needed", "full and not needed"],
)
@pytest.mark.parametrize("unbuffered", [[], ["-u"]], ids=["held back", "unbuffered"])
def test_what_is_written(unbuffered: list[str], command: str, redirected: str, result: tuple[int, str]) -> None:
    assert run_by_shell([*unbuffered, "-c", THEN + command], redirected) == result


def test_another_file_that_cannot_be_written_is_not_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where the details of a defect are put
    code, told = run_by_shell(["-c", THEN + ANOTHER_FILE], "")
    assert code == 1
    assert "standard output" not in told

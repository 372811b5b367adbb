"""Files that commands write: whole or not at all, whatever the disk does."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from engine_hooks.whole_file import write_whole, written_whole
from tests.conftest import ROOT

FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # The disk takes four kilobytes of a file, and no more.
import tachograph
sys.argv = ["tachograph", *sys.argv[1:]]
tachograph.main()
"""


@pytest.mark.parametrize(
    "command",
    [("query", "-f", "json", "-o"), ("simulate", "cell", "--seconds", "5", "--output")],
    ids=["query", "simulate"],
)
@pytest.mark.parametrize("there", [b"", b"of yesterday"], ids=["new", "in the place of another"])
def test_what_a_full_disk_cuts_is_not_left(tmp_path: Path, command: tuple[str, ...], there: bytes) -> None:
    file = tmp_path / "answer.json"
    if there:
        file.write_bytes(there)
    done = subprocess.run(
        [sys.executable, "-c", FULL, *command, str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert f"{file}: File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == (["answer.json"] if there else [])
    assert not there or file.read_bytes() == there


def test_a_file_takes_the_place_of_another_and_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"before, and longer")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, b"after")
    assert file.read_bytes() == b"after"
    assert file.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [file, link]


def test_what_is_no_ordinary_file_is_written_as_it_stands(tmp_path: Path) -> None:
    write_whole(Path("/dev/null"), b"gone")
    assert not Path("/dev/null").is_file()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, b"")
    assert list(tmp_path.iterdir()) == []


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "requests.gz"
    write_whole(file, b"before")

    def half(beside: Path) -> None:
        with gzip.open(beside, "wb") as written:
            written.write(b"half")
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"), written_whole(file) as beside:
        half(beside)
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]

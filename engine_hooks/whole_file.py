"""Writing a file whole or not at all: under another name beside its place, and renamed once it is on disk."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_whole(file: Path, content: bytes) -> None:
    """Write a file, in the place of one that is there. Where it cannot be written, what was there stays.

    Raises `OSError` where it cannot be written.
    """
    with written_whole(file) as beside:
        beside.write_bytes(content)


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Yields where to write; that becomes the file where nothing is raised within, and is removed otherwise.

    What is there and no ordinary file (`/dev/stdout`, a pipe) is written to as it stands; a link stays one.

    Raises `OSError` where it cannot be written.
    """
    if file.exists() and not file.is_file():
        yield file
        return
    target = file.resolve()
    beside = target.with_name(f"{target.name}.{os.getpid()}.unfinished")
    try:
        yield beside
        _sync(beside)
        with suppress(FileNotFoundError):
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    """Some disks say only then that they are full."""
    opened = os.open(file, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)

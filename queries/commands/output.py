"""Where a command's answer goes: a file, or standard output."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from engine_hooks.whole_file import write_whole
from queries.errors import CallError

F = TypeVar("F", bound=str)


def format_of(asked: F | None, output: Path | None, suffixes: Mapping[str, F], usual: F) -> F:
    """The format that is asked for; else the one that the file's suffix says, and without any the usual one.

    Raises:
        CallError: the suffix says none of them.
    """
    if asked is not None or output is None or not output.suffix:
        return asked or usual
    if output.suffix.lower() not in suffixes:
        known = ", ".join(suffixes)
        raise CallError(f"{output}: the suffix says the format, one of {known}; any other goes with --format")
    return suffixes[output.suffix.lower()]


def write(content: bytes, output: Path | None) -> None:
    """Write to the file, whole or not at all, or to standard output.

    Raises:
        CallError: Parquet on a terminal, or a file that cannot be written.
    """
    if output is None:
        if content.startswith(b"PAR1") and sys.stdout.isatty():
            raise CallError("parquet is binary: name a file by --output, or pipe it on")
        to_standard_output(content)
        return
    try:
        write_whole(output, content)
    except OSError as wrong:
        raise CallError(f"{output}: {wrong.strerror or wrong}") from wrong


def to_standard_output(content: bytes) -> None:
    """Write it all; a reader that has gone (`| head`) is no fault."""
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

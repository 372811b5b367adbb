"""Standard output of the whole command line: where it cannot be written, one kind of error says so."""

import errno
import io
import os
import sys
from typing import Any, Final

EXIT_CODE: Final = 74
"""As sysexits.h has it for input and output that fails: no command means anything else by it."""


class OutputError(OSError):
    """Standard output cannot be written: the disk is full, or nobody opened it."""

    def __str__(self) -> str:
        closed = self.errno == errno.EBADF
        why = "it is closed" if closed else (self.strerror or "it fails").lower()
        return f"standard output cannot be written: {why}"


class _Watched(io.FileIO):
    """A file descriptor whose faults are those of standard output, and so of no other file."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as wrong:
            raise OutputError(wrong.errno, wrong.strerror) from wrong


def watch() -> None:
    """Put a standard output in place that raises `OutputError`; where it was closed (`>&-`), too.

    One that somebody else has put in place stays.
    """
    if sys.stdout is None:
        # Open for reading alone: whatever is written there fails.
        closed = _Watched(os.open(os.devnull, os.O_RDONLY), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(closed), "utf-8")
    elif sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        own = sys.stdout
        raw = _Watched(own.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            raw if own.write_through else io.BufferedWriter(raw),  # `python -u` wants nothing held back
            own.encoding,
            own.errors,
            line_buffering=own.line_buffering,
            write_through=own.write_through,
        )


def flush() -> None:
    """Write what is still held back. A reader that has gone (`| head`) is no fault.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence()


def silence() -> None:
    """Let what is held back go nowhere: the interpreter writes once more when it ends, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""A profile file of either profiler, told apart by its content, as engine instances with their executions."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

from engine_hooks.adapters.kineto.reading import GZIP_MAGIC
from engine_hooks.adapters.kineto.trace import kineto_profile
from engine_hooks.adapters.nsight.export import SQLITE_MAGIC
from engine_hooks.adapters.nsight.profile import nsight_profile
from engine_hooks.adapters.profiles.columns import Profile
from engine_hooks.adapters.profiles.errors import TraceUnreadableError
from engine_hooks.adapters.profiles.imported import ImportedTrace, imported_profile
from engine_hooks.adapters.profiles.shifting import UNMOVED, Shift
from engine_hooks.contract.names import GraphKind


def imported(
    path: Path, kind: GraphKind, shift: Shift = UNMOVED, on_progress: Callable[[int], None] = lambda _: None
) -> ImportedTrace:
    """A file's graph executions. `on_progress` is told how many bytes of the file are done.

    Raises:
        TraceUnreadableError: the file cannot be opened, is cut off, is damaged, or is no profile.
        TraceMalformedError: something that matters has no usable time.
        NothingToImportError, WrongShiftError: see `imported_profile`.
    """
    return imported_profile(read_profile(path, on_progress), kind, shift)


def read_profile(path: Path, on_progress: Callable[[int], None] = lambda _: None) -> Profile:
    """A file's columns. Raises as `imported` does."""
    opening, packed = _opening(path)
    if opening == SQLITE_MAGIC:
        if packed:
            raise TraceUnreadableError(f"{path} is a packed SQLite database: unpack it (gunzip) and import that")
        return nsight_profile(path, on_progress)
    text = opening.lstrip()
    if text and text[:1] not in {b"{", b"["}:
        raise TraceUnreadableError(
            f"{path} is no profile: it is neither JSON of PyTorch's profiler (Kineto) nor SQLite of Nsight Systems "
            "(an .nsys-rep becomes that by: nsys export --type sqlite)"
        )
    return kineto_profile(path, on_progress)


def _opening(path: Path) -> tuple[bytes, bool]:
    """The first bytes, unpacked, and whether they were packed; nothing where they cannot be read."""
    try:
        with path.open("rb") as raw:
            first = raw.read(len(SQLITE_MAGIC))
            if not first.startswith(GZIP_MAGIC):
                return first, False
            raw.seek(0)
            return gzip.GzipFile(fileobj=raw).read(len(SQLITE_MAGIC)), True
    except (OSError, EOFError, zlib.error):
        return b"", False  # The reader meets it again, and says what and where.

"""Memory that was freed, given back to the system: by the embedded engine's allocator, and by the one of everything else.

The engine's (jemalloc) keeps freed pages for five seconds, in case they are wanted again; under a steady flow that is always
so, and 60 MB stay with it that nobody uses. Each of its threads keeps up to 200 freed pieces of every small size besides, and 20
of every larger one up to 32 KiB, also while it has nothing to do. It reads its options once, as the engine's library is loaded,
and from the environment alone: https://jemalloc.net/jemalloc.3.html#opt.dirty_decay_ms

Python, gRPC and SQLite have the C library's. glibc's unmaps a large piece when it is freed, but keeps later ones of up to that
size (32 MB at most), in up to eight arenas a core; the bodies of requests are such pieces. docs/decisions/0009-two-looks-at-a-span.md
https://man7.org/linux/man-pages/man3/mallopt.3.html#M_MMAP_THRESHOLD
"""

import ctypes
import os
from typing import Final

OPTIONS: Final = "JE_MALLOC_CONF"
"""Where the engine's allocator looks for options."""
_DIRTY_DECAY_MS: Final = 500
_KEPT_BY_A_THREAD_BYTES: Final = 4096
"""The largest piece that a thread keeps."""
_KEPT_BY_A_THREAD: Final = 20
"""Pieces of each small size."""

_M_MMAP_THRESHOLD: Final = -3
_MAPPED_FROM_BYTES: Final = 256 * 1024
_OPTIONS_OF_GLIBC: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def give_back_soon() -> None:
    """Freed pages go back within half a second, and large pieces at once; threads keep little.

    Of the engine's without effect once it is loaded. Who has set options keeps them.
    """
    kept = f"tcache_max:{_KEPT_BY_A_THREAD_BYTES},tcache_nslots_small_max:{_KEPT_BY_A_THREAD}"
    os.environ.setdefault(OPTIONS, f"dirty_decay_ms:{_DIRTY_DECAY_MS},{kept}")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's alone.
    if mallopt and not any(name in os.environ for name in _OPTIONS_OF_GLIBC):
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)

"""Memory that the embedded engine has freed, given back to the system.

Its allocator (jemalloc) keeps freed pages for five seconds, in case they are wanted again; under a steady flow that is always
so, and 60 MB stay with it that nobody uses. It reads its options once, as the engine's library is loaded, and from the
environment alone: https://jemalloc.net/jemalloc.3.html#opt.dirty_decay_ms
"""

import os
from typing import Final

OPTIONS: Final = "JE_MALLOC_CONF"
"""Where the engine's allocator looks for options."""
_DIRTY_DECAY_MS: Final = 500


def give_back_soon() -> None:
    """Freed pages go back within half a second. Without effect once the engine is loaded; who has set options keeps them."""
    os.environ.setdefault(OPTIONS, f"dirty_decay_ms:{_DIRTY_DECAY_MS}")

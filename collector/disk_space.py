"""Want of space on a disk, told as such, whoever finds it out and however it puts it.

CollectorError
└── NoSpaceError
"""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.errors import CollectorError

_SAID: Final = ("NOT_ENOUGH_SPACE", "No space left", "errno: 28", "disk is full")
"""What ClickHouse, the system and SQLite say of it."""


class NoSpaceError(CollectorError):
    """A disk has no room for what has to be written."""


@contextmanager
def telling_of_space(directory: Path, least_bytes: int = 0) -> Iterator[None]:
    """What fails within for want of space becomes one line that names the directory.

    Args:
        directory: What is written lies in it; it need not be there yet.
        least_bytes: With less free than this, whatever fails is taken to fail for it: half-written files are found
            to be damaged, and say nothing of the disk.

    Raises:
        NoSpaceError: it does.
    """
    try:
        yield
    except (CollectorError, ClickHouseError, OSError) as error:
        if is_want_of_space(error) or free_bytes_in(directory) < least_bytes:
            raise NoSpaceError(f"no space left in {directory}: free some, or name another --data-dir") from error
        raise


def free_bytes_in(directory: Path) -> int:
    """What the disk has free for us that a directory lies on, or would."""
    there = next(place for place in (directory.absolute(), *directory.absolute().parents) if place.is_dir())
    return shutil.disk_usage(there).free


def is_want_of_space(error: BaseException) -> bool:
    """Whether an error says that a disk is full, whoever met it."""
    return getattr(error, "errno", None) == errno.ENOSPC or any(said in str(error) for said in _SAID)

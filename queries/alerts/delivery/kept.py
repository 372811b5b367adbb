"""Small files of JSON that survive a restart, below the data directory: whole or not at all, whatever happens."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from queries.alerts.delivery.errors import NoRoomError, NotKeptError
from queries.alerts.memory import NO_ROOM

Kept = TypeVar("Kept", bound=BaseModel)


def write(file: Path, content: BaseModel) -> None:
    """Replace a file.

    Raises:
        NotKeptError: its directory cannot be written.
        NoRoomError: the disk is full.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=".new-", delete=False) as new:
            try:
                new.write(content.model_dump_json())
                new.flush()
                os.fsync(new.fileno())
                os.replace(new.name, file)
            except BaseException:
                Path(new.name).unlink(missing_ok=True)
                raise
    except OSError as wrong:
        kind = NoRoomError if wrong.errno in NO_ROOM else NotKeptError
        raise kind(
            f"{file.parent} cannot be written ({wrong.strerror}): name another by --data-dir or TACHOGRAPH_DATA_DIR"
        ) from wrong


def read(file: Path, kind: type[Kept]) -> Kept | None:
    """What a file holds; None where there is none, or it was damaged."""
    with contextlib.suppress(OSError, ValidationError):
        return kind.model_validate_json(file.read_bytes())
    return None

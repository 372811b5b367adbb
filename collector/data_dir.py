"""The data directory of commands that write in it: one that cannot be written is a wrong setting, and told as one.

CollectorError
└── DataDirError   the data directory cannot be made or written
"""

import errno
import tempfile
from pathlib import Path
from typing import Final

from collector.errors import CollectorError

NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT}
"""No fault of the setting; whoever writes there says what room is wanted."""


class DataDirError(CollectorError):
    """The data directory cannot be made or written."""

    exit_code = 2


def check_data_dir(data_dir: Path) -> None:
    """Make the data directory, and see that something can be written there.

    Raises:
        DataDirError: it cannot be made or written, whatever room there is.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data_dir):
            pass
    except OSError as error:
        if error.errno not in NO_ROOM:
            why = "it is no directory" if isinstance(error, FileExistsError) else error.strerror
            raise DataDirError(
                f"the data directory {data_dir} cannot be written ({why}): "
                "name another by --data-dir or TACHOGRAPH_DATA_DIR"
            ) from error

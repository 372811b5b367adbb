"""What another process has used so far, as Linux tells it."""

import os
from pathlib import Path
from typing import NamedTuple

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Costs(NamedTuple):
    """Since the process began; memory as it is now, and at its peak."""

    cpu_s: float
    written_bytes: int
    memory_bytes: int
    memory_peak_bytes: int
    memory_own_bytes: int
    """Without what is mapped from files, which the system takes back when it likes."""


def costs_of(pid: int) -> Costs:
    """CPU time of all its threads, bytes handed to the disk, resident memory."""
    proc = Path(f"/proc/{pid}")
    after_name = (proc / "stat").read_text().rpartition(")")[2].split()
    status = _table(proc / "status")
    return Costs(
        cpu_s=(int(after_name[11]) + int(after_name[12])) / _TICKS_A_SECOND,
        written_bytes=int(_table(proc / "io")["write_bytes"]),
        memory_bytes=_kibibytes(status["VmRSS"]),
        memory_peak_bytes=_kibibytes(status["VmHWM"]),
        memory_own_bytes=_kibibytes(status["RssAnon"]),
    )


def _table(file: Path) -> dict[str, str]:
    rows = (line.partition(":") for line in file.read_text().splitlines())
    return {name: value.strip() for name, _, value in rows}


def _kibibytes(value: str) -> int:
    return int(value.removesuffix(" kB")) * 1024

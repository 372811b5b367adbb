"""The processes of `tachograph up`: started one after the other, watched, and ended together.

CollectorError
└── PartFailedError       one of them ended or never served, or another `up` holds the data directory
    └── PartSettingError  one of them cannot be run with these settings
"""

import ctypes
import fcntl
import json
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from collector.access.certificate import trusting
from collector.errors import CollectorError
from collector.stop_signals import StopSignals

PR_SET_PDEATHSIG = 1
"""Of prctl(2): which signal a process gets when its parent dies."""


LINES_LOOKED_AT: Final = 50
"""Of a part's output, for the reason of its end."""
FAILURE: Final = "tachograph: "
"""How a command begins the line that says why it failed."""
UNCAUGHT: Final = re.compile(r"[\w.]*(Error|Exception)\b")
"""How Python ends a traceback."""


class PartFailedError(CollectorError):
    """A part of `tachograph up` ended or never served."""


class PartSettingError(PartFailedError):
    """A part was called or set wrongly. The text is its own line."""

    exit_code = 2


class Part(NamedTuple):
    """One process of `tachograph up`."""

    name: str
    command: list[str]
    ready_url: str | None = None
    """Answers 200 once the part serves; None is ready at once."""


def end_with_parent() -> None:
    """In a new child: be told to end when the supervisor dies, however it dies. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextmanager
def alone_in(data_dir: Path) -> Iterator[None]:
    """Hold a data directory, so that a second `tachograph up` leaves it alone.

    Raises:
        PartFailedError: it cannot be written, or another one holds it.
    """
    setting = "TACHOGRAPH_DATA_DIR"
    try:
        (data_dir / "logs").mkdir(parents=True, exist_ok=True)
        lock = (data_dir / "up.lock").open("w")
    except OSError as error:
        raise PartFailedError(f"cannot write in {data_dir}: {error.strerror}; set {setting}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PartFailedError(f"another tachograph up runs on {data_dir}; end it, or set {setting}") from error
        yield


class Supervisor:
    """Starts the parts, watches them, and ends all of them within twice `STOP_S` seconds."""

    STOP_S = 3.0
    READY_S = 60.0

    def __init__(
        self, logs: Path, environment: Mapping[str, str], stopping: StopSignals, trusted: Path | None = None
    ) -> None:
        """Args:
        logs: Directory of the parts' output.
        environment: What the parts find in theirs.
        stopping: Whether to stop waiting.
        trusted: Certificates that vouch for a part's `ready_url`; None are the system's.
        """
        self.stopping = stopping
        self._logs = logs
        self._environment = dict(environment)
        self._trusting = trusting(trusted)
        self.running: list[tuple[Part, subprocess.Popen[bytes]]] = []

    def start(self, part: Part) -> None:
        """Start one part and wait until it serves.

        Raises:
            PartFailedError: it ended, or did not serve within `READY_S`.
        """
        with self.log_of(part).open("wb") as log:
            # A session of its own: Ctrl-C reaches the supervisor alone, which then ends the parts in order.
            # -P: what lies in the present directory must not shadow a module.
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", "tachograph", *part.command],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 -- no other thread runs yet
            )
        self.running.append((part, process))
        deadline = time.monotonic() + self.READY_S
        while part.ready_url and not self.stopping.is_set() and (silence := silence_of(part.ready_url, self._trusting)):
            self.check()
            if time.monotonic() > deadline:
                raise PartFailedError(
                    f"the {part.name} did not serve at {part.ready_url} within {self.READY_S:.0f} s ({silence}); "
                    f"see {self.log_of(part)}"
                )
            self.stopping.wait(0.2)

    def check(self) -> None:
        """See whether all parts run.

        Raises:
            PartSettingError: one ended with its code, and said why.
            PartFailedError: one ended by itself.
        """
        for part, process in self.running:
            if process.poll() is not None:
                reason = reason_in(self.log_of(part).read_text(errors="replace"))
                if reason and process.returncode == PartSettingError.exit_code:
                    raise PartSettingError(reason)
                raise PartFailedError(
                    f"the {part.name} {ending_of(process.returncode)}{f': {reason}' if reason else ''}; "
                    f"see {self.log_of(part)}"
                )

    def stop(self) -> None:
        """End every part: those that only send first, so that what they still hold finds the collector.

        Each is asked, and killed after `STOP_S`.
        """
        for senders in (True, False):
            ending = [process for part, process in self.running if (part.ready_url is None) is senders]
            for process in ending:
                process.terminate()
            deadline = time.monotonic() + self.STOP_S
            for process in ending:
                end_by(deadline, process)

    def log_of(self, part: Part) -> Path:
        """Where a part's output goes; begun anew at each start."""
        return self._logs / f"{part.name}.log"


def ending_of(returncode: int) -> str:
    """How a process ended: `ended (1)`, `was killed by signal 9 (SIGKILL)`."""
    if returncode >= 0:
        return f"ended ({returncode})"
    known = {one.value: one.name for one in signal.Signals}
    return f"was killed by signal {-returncode}" + (f" ({known[-returncode]})" if -returncode in known else "")


def reason_in(log: str) -> str:
    """The last error that a part told, among its last lines; '' where it told none: other lines are no reason."""
    return next(filter(None, map(_error_of, reversed(log.splitlines()[-LINES_LOOKED_AT:]))), "")


def _error_of(line: str) -> str:
    """What a line says is wrong; '' where it is no error."""
    if line.startswith(FAILURE) or UNCAUGHT.match(line):
        return line.removeprefix(FAILURE).strip()
    try:
        told = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(told, dict) or told.get("level") not in ("error", "critical"):
        return ""
    return ": ".join(str(told[name]) for name in ("event", "error") if told.get(name))


def end_by(deadline: float, process: "subprocess.Popen[bytes]") -> None:
    """Wait for a process until then, by the monotonic clock; kill it if it still runs."""
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def silence_of(url: str, trusting_context: ssl.SSLContext) -> str:
    """Why a URL does not answer 200 within a second; '' if it does."""
    try:
        with urllib.request.urlopen(url, timeout=1, context=trusting_context) as response:  # noqa: S310
            return "" if response.status == 200 else f"it answers {response.status}"
    except OSError as error:
        return str(error) or type(error).__name__

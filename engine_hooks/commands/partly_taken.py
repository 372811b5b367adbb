"""What a command says where a collector took a part of what it was sent: how much, and how to send all of it again."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine_hooks.commands.counting import counted
from engine_hooks.errors import SendError
from engine_hooks.recorder.sending import Sender


@contextmanager
def telling_taken(connection: Sender, executions: int, again: str) -> Iterator[None]:
    """Where sending fails within, the error says how many executions were taken before, and how to send all again.

    Where an answer was lost, that many are the least that was taken.

    Args:
        connection: Sends all of them.
        executions: How many there are to send.
        again: How the command sends the same once more, which follows `send again`.

    Raises:
        SendError: as it comes where surely nothing was taken, else with what was.
    """
    try:
        yield
    except SendError as error:
        if not connection.taken and not connection.in_doubt:
            raise
        raise SendError(f"{_taken(connection)} of {counted(executions, 'execution')}, then: {error}{again}") from error


def _taken(connection: Sender) -> str:
    if not connection.taken:
        return "took some, perhaps,"
    return f"took {'at least ' if connection.in_doubt else ''}{connection.taken:,}"

"""The ports a collector listens on, taken before anything starts, so that a taken one is told at once."""

import errno
import socket

from collector.errors import CollectorError


class PortTakenError(CollectorError):
    """Another process listens on a port, or the address is not this machine's."""

    exit_code = 2


def bind(listen_address: str, port: int, setting: str) -> socket.socket:
    """A socket bound to that port and listening; 0 is any free one.

    Args:
        listen_address: Address of an interface of this machine.
        port: TCP port.
        setting: The environment variable that names another port, for the message.

    Raises:
        PortTakenError: it cannot be bound; the text names the port and the setting.
    """
    family = socket.AF_INET6 if ":" in listen_address else socket.AF_INET
    # Named, because asyncio sets TCP_NODELAY only on sockets that say they are TCP: without, every answer on a
    # kept connection takes 40 ms longer.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Only past connections of a process that ended are overlooked, not a listener.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((listen_address, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise PortTakenError(_complaint(listen_address, port, setting, error)) from error
    return listening


def port_of(listening: socket.socket) -> int:
    """The port a socket is bound to."""
    port: int = listening.getsockname()[1]
    return port


def _complaint(listen_address: str, port: int, setting: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {listen_address} is taken: stop what listens there, or set {setting} to another port"
    if error.errno == errno.EACCES:
        return f"port {port} on {listen_address} may not be opened by this user: set {setting} to one above 1023"
    return f"cannot listen on {listen_address} ({error.strerror}): set TACHOGRAPH_LISTEN_ADDRESS to an address of this machine"


def host_and_port(address: str, port: int) -> str:
    """`address:port` as URLs and gRPC write it: an IPv6 address in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

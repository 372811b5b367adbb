"""An ASGI application served by uvicorn in a thread of its own, on a socket bound beforehand."""

import socket
import threading
import time
from typing import Any

import uvicorn

from collector.errors import CollectorError

_START_TIMEOUT_S = 10.0


class HttpServer:
    """One server. `start` it once, `stop` it once; the socket is closed with it."""

    def __init__(self, app: Any, listening: socket.socket, name: str) -> None:
        self._socket = listening
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name=name, daemon=True
        )

    def start(self) -> None:
        """Serve; returns once connections are answered.

        Raises:
            CollectorError: it did not come up.
        """
        self._thread.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise CollectorError(f"the HTTP server on {self._socket.getsockname()} did not start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Take no new requests; those under way have a second to be answered."""
        self._server.should_exit = True
        self._thread.join(5.0)
        self._socket.close()

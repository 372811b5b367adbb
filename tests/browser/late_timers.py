"""A timer of a page whose request comes late: when the server is already at work on another page.

It happens by itself where the browser's timer fires between the server's change of pages and the browser's hearing of
it, which is a fraction of a second; here it happens each time.
"""

import re

from playwright.sync_api import Page, WebSocketRoute
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

STREAM = re.compile("/_stcore/stream")


class LateTimer:
    """Stands between one page and its server, and sends a timer's request once more as soon as another page begins."""

    def __init__(self, page: Page) -> None:
        self.sent = False
        self._request: bytes | None = None
        self._left: str = ""
        page.route_web_socket(STREAM, self._pass_on)

    @property
    def is_known(self) -> bool:
        """Whether the timer has fired, so that there is a request to send late."""
        return self._request is not None

    def _pass_on(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def to_server(message: str | bytes) -> None:
            if isinstance(message, bytes):
                asked = BackMsg.FromString(message).rerun_script
                if asked.is_auto_rerun:
                    self._request, self._left = message, asked.page_script_hash
            server.send(message)

        def to_page(message: str | bytes) -> None:
            told = ForwardMsg.FromString(message) if isinstance(message, bytes) else ForwardMsg()
            begins = told.new_session.page_script_hash
            if self._request is not None and not self.sent and begins not in {"", self._left}:
                self.sent = True
                server.send(self._request)
            route.send(message)

        route.on_message(to_server)
        server.on_message(to_page)

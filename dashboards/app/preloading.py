"""The browser is told at once which code a page of charts needs.

Streamlit's page has it find that out by and by: the code of each kind of element is fetched once the first of its
kind is to be drawn, by the server that is just then at work on the page. On a busy machine the chart waited a second
and more for that. It also tries out at which address its server might be, and leaves two errors (404) in the console of
every page but the first: it is told that, too.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.file_util import get_static_dir

ELEMENTS: Final = ("Html", "Selectbox", "NumberInput", "TextInput", "Button", "ArrowVegaLiteChart")
"""What the pages draw before their first chart, and the chart, as Streamlit's files of code are called."""
SERVER_NAMED: Final = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", document.baseURI).href}</script>'
"""The server is where the page's own folder is: no page is nested, and a proxy's prefix stays."""
IMPORTED: Final = re.compile(r'(?:from|import)"\./([^"/]+\.js)"')
NAMED: Final = re.compile(r'"\./static/js/([^"/]+\.js)"')


class Preloading:
    """ASGI middleware: names the server and the code of `ELEMENTS` in the head of every page."""

    def __init__(self, app: ASGIApp, static: Path | None = None) -> None:
        """
        Args:
            app: What serves the pages.
            static: Streamlit's `static` folder; None is the installed one's.
        """
        self._app = app
        links = map(link, code_of(ELEMENTS, static or Path(get_static_dir())))
        self._named = "".join([SERVER_NAMED, *links]).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve; a page goes out once it is whole, since its length is told first."""
        start: Message | None = None
        page = b""

        async def adding(message: Message) -> None:
            nonlocal start, page
            if message["type"] == "http.response.start" and is_page(message):
                start = message
                return
            if start is not None and message["type"] == "http.response.body":
                page += message.get("body", b"")
                if message.get("more_body"):
                    return
                message = {"type": "http.response.body", "body": page.replace(b"</head>", self._named + b"</head>", 1)}
                MutableHeaders(scope=start)["content-length"] = str(len(message["body"]))
                await send(start)
            await send(message)

        if asks_for_page(scope):
            await self._app(uncompressed(scope), receive, adding)
        else:
            await self._app(scope, receive, send)


def asks_for_page(scope: Scope) -> bool:
    """Whether a request is a browser's for a page."""
    return (
        scope["type"] == "http" and scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")
    )


def uncompressed(scope: Scope) -> Scope:
    """The same request of someone who reads no compressed answers: what is compressed cannot be added to."""
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"accept-encoding"]
    return {**scope, "headers": headers}


def is_page(start: Message) -> bool:
    """Whether a response is a page that the browser reads whole."""
    return start["status"] == 200 and Headers(raw=start["headers"]).get("content-type", "").startswith("text/html")


def code_of(elements: Iterable[str], static: Path) -> list[str]:
    """The files that the elements need, with all that those import, beyond what Streamlit's page names itself.

    An element that this Streamlit calls otherwise is left out: the browser finds its code by and by.
    """
    folder = static / "static" / "js"
    named = set(NAMED.findall((static / "index.html").read_text(encoding="utf-8")))
    found: dict[str, None] = {}
    wanted = [file.name for element in elements for file in folder.glob(f"{element}.*.js")]
    while wanted:
        name = wanted.pop(0)
        if name not in named and name not in found:
            found[name] = None
            wanted += IMPORTED.findall((folder / name).read_text(encoding="utf-8"))
    return list(found)


def link(name: str) -> str:
    """Names one file in a page's head."""
    return f'<link rel="modulepreload" crossorigin href="./static/js/{name}">'

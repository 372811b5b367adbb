"""The code that the browser is told of at once: what the elements need, and nothing that is not there."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.file_util import get_static_dir

from dashboards.app.preloading import ELEMENTS, SERVER_NAMED, Preloading, code_of

PAGE = '<html><head><script src="./static/js/index.1.js"></script></head><body>a</head>b</body></html>'
AS_BROWSERS_ASK = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8", "accept-encoding": "gzip, deflate"}


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """A Streamlit of three kinds of elements."""
    code = tmp_path / "static" / "js"
    code.mkdir(parents=True)
    (tmp_path / "index.html").write_text(PAGE)
    for name, text in {
        "index.1.js": "",
        "Selectbox.2.js": 'import{a as b}from"./index.1.js";import"./menu.3.js";const late=()=>import(`./late.4.js`);',
        "menu.3.js": 'import{c}from"./Selectbox.2.js";import d from"./deep.5.js";',
        "deep.5.js": "",
        "late.4.js": "",
        "SelectboxOther.6.js": "",
    }.items():
        (code / name).write_text(text)
    return tmp_path


def client(static: Path) -> TestClient:
    def page(_request: Request) -> Response:
        return HTMLResponse(PAGE)

    def words(_request: Request) -> Response:
        return PlainTextResponse("</head>")

    def missing(_request: Request) -> Response:
        return HTMLResponse(PAGE, status_code=404)

    routes = [Route("/", page), Route("/words", words), Route("/missing", missing)]
    middleware = [Middleware(Preloading, static=static), Middleware(GZipMiddleware, minimum_size=1)]
    return TestClient(Starlette(routes=routes, middleware=middleware), headers=AS_BROWSERS_ASK)


def test_an_element_needs_its_code_and_all_that_it_imports_but_not_what_the_page_names(static: Path) -> None:
    assert code_of(["Selectbox"], static) == ["Selectbox.2.js", "menu.3.js", "deep.5.js"]


def test_an_element_that_is_not_there_is_left_out(static: Path) -> None:
    assert code_of(["Gone", "Selectbox"], static) == code_of(["Selectbox"], static)


def test_the_installed_streamlit_has_every_element() -> None:
    static = Path(get_static_dir())
    for element in ELEMENTS:
        assert code_of([element], static), element
        assert all((static / "static" / "js" / name).exists() for name in code_of([element], static))


def test_a_page_names_them_in_its_head_and_tells_its_length(static: Path) -> None:
    answer = client(static).get("/")
    head, rest = answer.text.split("</head>", 1)
    assert head.count('<link rel="modulepreload" crossorigin href="./static/js/') == 3
    assert 'href="./static/js/deep.5.js"' in head
    assert head.count(SERVER_NAMED) == 1
    assert rest == "<body>a</head>b</body></html>"
    assert answer.headers["content-length"] == str(len(answer.content))


def test_other_answers_go_out_as_they_are(static: Path) -> None:
    assert client(static).get("/words").text == "</head>"
    assert client(static).get("/missing").text == PAGE
    assert SERVER_NAMED not in client(static).head("/").text
    assert client(static).get("/", headers={"accept": "*/*"}).text == PAGE


def test_only_pages_go_out_uncompressed(static: Path) -> None:
    asking = client(static)
    assert "content-encoding" not in asking.get("/").headers
    assert asking.get("/words", headers={"accept": "*/*"}).headers["content-encoding"] == "gzip"

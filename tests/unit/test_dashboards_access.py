"""Who may look at the dashboards: settings, the password's gate, and who is admitted after logging in."""

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from collector.access.secret import given_secrets, secrets_in
from dashboards import access
from dashboards.app import login
from dashboards.app.password_gate import COOKIE, PasswordGate
from dashboards.commands import GUARDED_APP, environment_of, streamlit_command
from dashboards.errors import DashboardAccessError
from dashboards.links import FLEET_PAGE
from dashboards.reading.store import RULES_VARIABLE
from tests.fixtures.pages import NOWHERE, page_opened, said

EVERYWHERE = "0.0.0.0"  # noqa: S104
SECRET = "s3cret-of-the-tests"  # noqa: S105
OIDC = """
[auth]
redirect_uri = "https://tacho.example.com/oauth2callback"
cookie_secret = "a-long-random-text"
client_id = "tachograph"
client_secret = "from-the-provider"
server_metadata_url = "https://login.example.com/.well-known/openid-configuration"
"""
EMAILS = '[tachograph]\nemails = ["*@example.com"]\n'


def settings(**values: Any) -> Any:
    nothing = {
        "dashboard_address": "127.0.0.1", "dashboard_port": 8501, "dashboard_reachable_as": "",
        "dashboard_password": SecretStr(""), "dashboard_password_file": None, "dashboard_oidc_file": None,
        "data_dir": Path("/data"), "alertmanager_urls": "", "alert_rules": None,
        "clickhouse_url": "http://host/db", "collector_url": "http://host:4318",
    }  # fmt: skip
    return SimpleNamespace(**nothing | values)


@pytest.fixture
def oidc_file(tmp_path: Path) -> Path:
    file = tmp_path / "oidc.toml"
    file.write_text(OIDC + EMAILS)
    return file


class TestSettings:
    def test_loopback_asks_nobody(self) -> None:
        access.check_access(settings())

    @pytest.mark.parametrize("address", [EVERYWHERE, "192.0.2.7", "::"])
    def test_off_loopback_without_either_is_one_line(self, address: str) -> None:
        with pytest.raises(DashboardAccessError, match=r"TACHOGRAPH_DASHBOARD_PASSWORD.*OIDC_FILE") as refused:
            access.check_access(settings(dashboard_address=address))
        assert "\n" not in str(refused.value)
        assert refused.value.exit_code == 2

    def test_off_loopback_with_a_password_or_a_login(self, oidc_file: Path) -> None:
        access.check_access(settings(dashboard_address=EVERYWHERE, dashboard_password=SecretStr(SECRET)))
        access.check_access(settings(dashboard_address=EVERYWHERE, dashboard_oidc_file=oidc_file))

    def test_an_empty_password_file_is_none(self, tmp_path: Path) -> None:
        file = tmp_path / "password"
        file.write_text("\n")
        with pytest.raises(DashboardAccessError, match="TACHOGRAPH_DASHBOARD_PASSWORD_FILE"):
            access.check_access(settings(dashboard_password_file=file))

    def test_two_at_once_are_refused(self, oidc_file: Path) -> None:
        with pytest.raises(DashboardAccessError, match="unset one"):
            access.check_access(settings(dashboard_password=SecretStr(SECRET), dashboard_oidc_file=oidc_file))
        with pytest.raises(DashboardAccessError, match="unset one"):
            access.check_access(settings(dashboard_password=SecretStr(SECRET), dashboard_password_file=oidc_file))

    @pytest.mark.parametrize(
        ("content", "lacking"),
        [("", "auth.client_id"), (OIDC, "tachograph.emails"), (OIDC + "[tachograph]\nemails = []", "tachograph.emails"),
         ("not toml", "it is no TOML"), (OIDC.replace("cookie_secret", "cookie") + EMAILS, "auth.cookie_secret")],
    )  # fmt: skip
    def test_a_file_that_would_let_nobody_in(self, tmp_path: Path, content: str, lacking: str) -> None:
        file = tmp_path / "oidc.toml"
        file.write_text(content)
        with pytest.raises(DashboardAccessError, match=lacking) as refused:
            access.check_oidc(file)
        assert "from-the-provider" not in str(refused.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(DashboardAccessError, match="No such file"):
            access.check_oidc(tmp_path / "none.toml")

    def test_a_password_goes_by_the_environment_and_no_flag(self) -> None:
        guarded = settings(dashboard_password=SecretStr(SECRET))
        assert environment_of(guarded)[access.PASSWORD] == SECRET
        command = streamlit_command(guarded)
        assert str(GUARDED_APP) in command
        assert SECRET not in " ".join(command)

    def test_the_pages_know_the_users_own_rules(self) -> None:
        assert environment_of(settings())[RULES_VARIABLE] == ""
        assert environment_of(settings(alert_rules=Path("/etc/rules")))[RULES_VARIABLE] == "/etc/rules"

    def test_the_proxys_name_is_let_in(self, oidc_file: Path) -> None:
        command = streamlit_command(settings(dashboard_reachable_as="tacho.example.com", dashboard_oidc_file=oidc_file))
        assert "--server.allowedHosts=tacho.example.com" in command
        assert command[command.index("--browser.serverAddress") + 1] == "tacho.example.com"
        assert command[command.index("--secrets.files") + 1] == str(oidc_file)


class TestAdmitted:
    @pytest.mark.parametrize(
        ("user", "admitted"),
        [
            ({"email": "Ada@Example.com", "email_verified": True}, True),
            ({"email": "ada@example.com"}, True),
            ({"email": "ada@example.com", "email_verified": False}, False),
            ({"email": "ada@example.com.evil.org"}, False),
            ({"email": ""}, False),
            ({"name": "Ada"}, False),
        ],
    )
    def test_by_the_address_that_the_provider_vouches_for(self, user: dict[str, Any], admitted: bool) -> None:
        emails = access.admitted_emails({"tachograph": {"emails": ["*@example.com"]}})
        assert access.is_admitted(user, emails) is admitted

    def test_nobody_sees_a_page_before_logging_in(self, oidc_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(access.OIDC_FILE, str(oidc_file))
        app = page_opened(FLEET_PAGE, NOWHERE, monkeypatch)
        assert [button.label for button in app.button] == ["Log in"]
        assert "Which engines" not in said(app)

    @pytest.mark.parametrize(("email", "sees"), [("ada@example.com", True), ("eve@evil.org", False)])
    def test_who_is_not_on_the_list_sees_no_page(
        self, oidc_file: Path, monkeypatch: pytest.MonkeyPatch, email: str, sees: bool
    ) -> None:
        monkeypatch.setenv(access.OIDC_FILE, str(oidc_file))
        monkeypatch.setattr(login, "visitor", lambda: {"is_logged_in": True, "email": email})
        monkeypatch.setattr(login, "admitted_emails", lambda _: ["*@example.com"])
        app = page_opened(FLEET_PAGE, NOWHERE, monkeypatch)
        assert ("Which engines" in said(app)) is sees
        assert ("may not look" in said(app)) is not sees
        assert "Log out" in [button.label for button in app.button] or not sees


async def page(_request: Any) -> PlainTextResponse:
    return PlainTextResponse("the page")


async def socket(connection: WebSocket) -> None:
    await connection.accept()
    await connection.send_text("the page")
    await connection.close()


def basic(password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()}


def client(passwords: Any) -> TestClient:
    routes = [Route("/", page), Route("/_stcore/health", page), WebSocketRoute("/_stcore/stream", socket)]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(PasswordGate, passwords=passwords)]))


class TestGate:
    def test_nothing_without_the_password(self) -> None:
        visitor = client(given_secrets([SECRET], "X"))
        refused = visitor.get("/")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic")
        assert "set-cookie" not in refused.headers
        assert visitor.get("/", headers=basic("wrong")).status_code == 401
        assert visitor.get("/", headers={"cookie": f"{COOKIE}=forged"}).status_code == 401
        with pytest.raises(WebSocketDisconnect), visitor.websocket_connect("/_stcore/stream"):
            pass

    def test_the_password_gives_a_cookie_that_opens_the_connection(self) -> None:
        visitor = client(given_secrets([SECRET], "X"))
        let_in = visitor.get("/", headers=basic(SECRET))
        assert let_in.text == "the page"
        assert "HttpOnly" in let_in.headers["set-cookie"]
        assert SECRET not in let_in.headers["set-cookie"]
        assert visitor.get("/").text == "the page"
        with visitor.websocket_connect("/_stcore/stream") as connection:
            assert connection.receive_text() == "the page"

    def test_the_cookie_ends_with_the_password(self, tmp_path: Path) -> None:
        file = tmp_path / "password"
        file.write_text(SECRET)
        visitor = client(secrets_in(file, "X"))
        assert visitor.get("/", headers=basic(SECRET)).status_code == 200
        file.write_text("another-one-now")
        assert visitor.get("/").status_code == 401
        assert visitor.get("/", headers=basic("another-one-now")).status_code == 200

    def test_behind_tls_the_cookie_stays_there(self) -> None:
        visitor = client(given_secrets([SECRET], "X"))
        assert (
            "Secure" in visitor.get("/", headers=basic(SECRET) | {"x-forwarded-proto": "https"}).headers["set-cookie"]
        )

    def test_whether_it_lives_is_no_secret(self) -> None:
        assert client(given_secrets([SECRET], "X")).get("/_stcore/health").status_code == 200

"""What `tachograph up` prints once all of it runs: where everything is, and what an engine needs to send to it."""

import shlex
from pathlib import Path

import pytest
from pydantic import SecretStr

from tachograph import Settings, addresses


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)


def of_an_engine(settings: Settings) -> list[str]:
    """The line for engines, as a shell takes it apart."""
    (line,) = (line for line in addresses(settings).splitlines() if "OTEL_" in line)
    assert line.startswith("  your engine     OTEL_")
    return shlex.split(line.removeprefix("  your engine"))


def test_an_engine_needs_the_endpoint() -> None:
    settings = Settings(otlp_grpc_port=21001, dashboard_port=21002)
    assert of_an_engine(settings) == [
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:21001",
        "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
        "YOUR_ENGINE",
    ]
    assert "  dashboards      http://127.0.0.1:21002" in addresses(settings).splitlines()


def test_an_engine_needs_a_token_and_the_certificate_where_they_are_asked_for(tmp_path: Path) -> None:
    settings = Settings(
        ingest_tokens=SecretStr("secret1,secret2"),
        reachable_as="tacho.example.com",
        tls_certificate=tmp_path / "certificate.pem",
        tls_ca=tmp_path / "our own.pem",
    )
    assert of_an_engine(settings) == [
        "OTEL_EXPORTER_OTLP_ENDPOINT=https://tacho.example.com:4317",
        "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
        "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN",
        f"OTEL_EXPORTER_OTLP_CERTIFICATE={tmp_path / 'our own.pem'}",
        "YOUR_ENGINE",
    ]
    assert "secret1" not in addresses(settings)

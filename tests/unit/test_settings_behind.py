"""A command takes as flags the settings that can make a difference to it, and refuses the others."""

from typing import Any, Protocol

import pytest
import typer
from typer.testing import CliRunner

from collector.access.behind import BEHIND, settings_behind
from tachograph import Settings, application

COMMAND = typer.main.get_command(application())
REACHED = {"listen_address", "reachable_as", "tls_certificate", "tls_ca"}
SENDING = {*REACHED, "otlp_endpoint", "otlp_grpc_port", "ingest_tokens_file"}
READING = {*REACHED, "clickhouse_url", "clickhouse_port", "sql_user", "sql_password_file"}


class Sending(Protocol):
    """As the rooms write it: inherited members count."""

    otlp_endpoint: str


class SendingFrom(Sending, Protocol):
    @property
    def data_dir(self) -> str: ...


def known(names: frozenset[str]) -> set[str]:
    return set(names & Settings.model_fields.keys())


def test_settings_behind_a_protocol() -> None:
    assert known(settings_behind(SendingFrom, filled=True)) == {*SENDING, "data_dir"}
    assert known(settings_behind(SendingFrom, filled=False)) == {"otlp_endpoint", "data_dir"}
    assert known(settings_behind(Settings, filled=False)) == set(Settings.model_fields)


def test_what_stands_behind_is_a_setting() -> None:
    assert frozenset().union(*BEHIND.values()) <= Settings.model_fields.keys()


def flags_of(*path: str) -> set[str]:
    command: Any = COMMAND
    for name in path:
        command = command.commands[name]
    return {parameter.name for parameter in command.params} & Settings.model_fields.keys()


def test_flags_of_commands() -> None:
    assert flags_of("demo", "torch") == flags_of("simulate", "live") == SENDING
    assert flags_of("query") == flags_of("top") == READING
    assert flags_of("spool", "list") == {"data_dir"}
    assert {"store_bytes_max", "sampling", "otlp_grpc_port", "tls_key"} <= flags_of("collect")
    assert {"data_dir", "alert_interval_s", "dashboard_password_file"} <= flags_of("up")


@pytest.mark.parametrize(
    ("command", "flag"), [(["demo", "torch"], "--store-bytes-max"), (["query", "cells"], "--spool-bytes-max")]
)
def test_a_flag_that_would_be_ignored_is_refused(command: list[str], flag: str) -> None:
    done = CliRunner().invoke(application(), [*command, flag, "1"])
    assert done.exit_code == 2
    assert "no such option" in done.output

"""The example configurations of docs/deploy: parsed, and held against the names that their programs document."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from collector.cluster.form import ClusterForm
from collector.store.migrations import schema_files
from tachograph import Settings
from tests.conftest import ROOT

DEPLOY: Final = ROOT / "docs" / "deploy"
COLLECTORS: Final = ("agent.yaml", "gateway.yaml")
UNITS: Final = tuple(sorted(path.name for path in DEPLOY.glob("*.service")))
QUEUE: Final = {"sending_queue", "retry_on_failure", "timeout"}
SETTINGS: Final[dict[tuple[str, str], set[str]]] = {
    ("extensions", "health_check"): {"endpoint"},
    ("extensions", "bearertokenauth"): {"filename", "token", "scheme"},
    ("extensions", "file_storage"): {"directory", "fsync", "timeout", "create_directory", "compaction"},
    ("receivers", "otlp"): {"protocols"},
    ("processors", "memory_limiter"): {"check_interval", "limit_mib", "spike_limit_mib"},
    ("processors", "filter"): {"error_mode", "traces"},
    ("exporters", "otlp"): {"endpoint", "compression", "auth", "tls"} | QUEUE,
    ("exporters", "clickhouse"): {
        "endpoint", "username", "password", "database", "traces_table_name", "create_schema", "async_insert", "ttl", "compress",
    } | QUEUE,
}  # fmt: skip
"""Components that these files may use, with their settings, as the OpenTelemetry Collector 0.140 documents them."""
QUEUE_SETTINGS: Final = {"storage", "sizer", "queue_size", "block_on_overflow", "num_consumers", "batch"}
BATCH_SETTINGS: Final = {"sizer", "min_size", "max_size", "flush_timeout"}
OPTIONAL_NAME: Final = re.compile(r"/[\w-]+$")


def loaded(name: str) -> dict[str, Any]:
    configuration: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text())
    return configuration


def components(configuration: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for section in ("extensions", "receivers", "processors", "exporters"):
        for name, settings in configuration[section].items():
            yield section, name, settings


@pytest.mark.parametrize("name", COLLECTORS)
def test_components_and_settings_are_documented_ones(name: str) -> None:
    for section, component, settings in components(loaded(name)):
        known = SETTINGS[section, OPTIONAL_NAME.sub("", component)]
        assert settings.keys() <= known, component


@pytest.mark.parametrize("name", COLLECTORS)
def test_what_is_used_is_defined_and_what_is_defined_is_used(name: str) -> None:
    configuration = loaded(name)
    service = configuration["service"]
    used = {("extensions", one) for one in service["extensions"]}
    for pipeline in service["pipelines"].values():
        used |= {(section, one) for section, names in pipeline.items() for one in names}
    assert used == {(section, component) for section, component, _ in components(configuration)}
    text = (DEPLOY / name).read_text()
    named = set(re.findall(r"(?:authenticator|storage): (\S+)", text))
    assert named <= configuration["extensions"].keys()


@pytest.mark.parametrize("name", COLLECTORS)
def test_nothing_is_dropped_by_default(name: str) -> None:
    """A queue on disk that holds back when it is full, and retries without end."""
    configuration = loaded(name)
    for section, component, settings in components(configuration):
        if section != "exporters":
            continue
        queue = settings["sending_queue"]
        assert queue.keys() <= QUEUE_SETTINGS, component
        assert queue["batch"].keys() <= BATCH_SETTINGS, component
        assert queue["storage"] in configuration["extensions"]
        assert queue["block_on_overflow"] is True
        assert queue["batch"]["min_size"] <= queue["batch"]["max_size"]
        assert settings["retry_on_failure"] == {"max_elapsed_time": "0s"}


def test_the_gateway_inserts_into_the_table_that_the_schema_makes() -> None:
    exporter = loaded("gateway.yaml")["exporters"]["clickhouse"]
    made = {name for file in schema_files(otel_traces=True) for name in re.findall(r"EXISTS (\w+)", file.statement)}
    assert exporter["traces_table_name"] in made
    assert (exporter["create_schema"], exporter["async_insert"]) == (False, False)


def test_the_cluster_has_the_macros_that_the_schema_wants() -> None:
    root = ET.parse(DEPLOY / "clickhouse" / "fleet.xml").getroot()  # noqa: S314 -- our own file
    clusters = root.find("remote_servers")
    assert clusters is not None
    (cluster,) = clusters
    files = schema_files(otel_traces=True)
    form = ClusterForm(cluster.tag, "tachograph", [file.statement for file in files])
    wanted = set(re.findall(r"\{(\w+)\}", " ".join(one for file in files for one in form.of(file.statement))))
    macros = root.find("macros")
    assert macros is not None
    assert wanted - {"database", "table"} == {macro.tag for macro in macros}
    assert all(shard.findtext("internal_replication") == "true" for shard in cluster.iter("shard"))


def test_every_user_has_a_profile_and_the_reader_cannot_write() -> None:
    root = ET.parse(DEPLOY / "clickhouse" / "users.xml").getroot()  # noqa: S314 -- our own file
    profiles = {profile.tag: profile for profile in root.find("profiles") or ()}
    users = {user.tag: user for user in root.find("users") or ()}
    assert {user.findtext("profile") for user in users.values()} == profiles.keys()
    assert profiles[str(users["reader"].findtext("profile"))].findtext("readonly") == "2"
    assert [grant.text for grant in users["reader"].iter("query")] == ["GRANT SELECT ON tachograph.*"]


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_units(name: str, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    there = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", (DEPLOY / name).read_text())
    (tmp_path / name.replace("@", "@one")).write_text(there)
    command = ["systemd-analyze", "verify", str(tmp_path / name.replace("@", "@one"))]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr
    assert [line for line in said.splitlines() if name.partition("@")[0] in line] == []


def test_the_reverse_proxy_is_well_formed() -> None:
    text = re.sub(r"#.*", "", (DEPLOY / "nginx.conf").read_text())
    assert text.count("{") == text.count("}")
    statements = [line.strip() for line in text.splitlines() if line.strip()]
    assert all(line.endswith(("{", "}", ";")) for line in statements)
    assert "proxy_set_header Upgrade $http_upgrade;" in statements


def test_the_environment_sets_what_there_is_to_set() -> None:
    given = dict(
        line.split("=", 1) for line in (DEPLOY / "environment").read_text().splitlines() if not line.startswith("#")
    )
    assert {name.removeprefix("TACHOGRAPH_").lower() for name in given} <= set(Settings.model_fields)

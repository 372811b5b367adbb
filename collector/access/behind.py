"""Which of the command line's settings stand behind those that a command asks for."""

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_REACHED: Final = frozenset({"listen_address", "reachable_as", "tls_certificate", "tls_ca"})
_READER: Final = frozenset({"sql_user", "sql_password_file"})

BEHIND: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "own_url": _REACHED,
        "clickhouse_url": _REACHED | _READER | {"clickhouse_port"},
        "collector_url": _REACHED | _READER | {"otlp_http_port"},
        "otlp_endpoint": _REACHED | {"otlp_grpc_port", "ingest_tokens_file"},
        "rows_url": _REACHED | {"otlp_http_port", "ingest_tokens_file"},
        "dashboards_url": frozenset({"dashboard_address", "dashboard_port"}),
    }
)
"""By what is worked out of settings when it is not set itself: of which ones."""


def settings_behind(asked: type, *, filled: bool) -> frozenset[str]:
    """Names of the settings that can make a difference to a command.

    Args:
        asked: The class or protocol of its `settings`.
        filled: Whether it is given URLs filled in, of the collector and the store that the settings describe.
    """
    of_classes = (inspect.get_annotations(base) for base in asked.__mro__)
    names = frozenset(dir(asked)).union(*of_classes)
    worked_out = [BEHIND[name] for name in names & BEHIND.keys() if filled or name in {"own_url", "dashboards_url"}]
    return names.union(*worked_out)

"""What an error of ClickHouse says is not there."""

import pytest

from queries.client import missing_in

UNKNOWN = "Code: 60. DB::Exception: Unknown table expression identifier"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (f"{UNKNOWN} 'graph_exec'. Maybe you meant tachograph.graph_executions? In scope SELECT 1. (UNKNOWN_TABLE)", "table graph_exec"),
        (f"{UNKNOWN} 'other.we-ird'. In scope SELECT 1. (UNKNOWN_TABLE)", "table we-ird"),
        ("Code: 60. DB::Exception: Table tachograph.nope does not exist. (UNKNOWN_TABLE)", "table nope"),
        ("Code: 60. DB::Exception: Something else. (UNKNOWN_TABLE)", ""),
        ("Code: 81. DB::Exception: Database absent does not exist. (UNKNOWN_DATABASE)", "database absent"),
        ("Code: 62. DB::Exception: Syntax error: Table x does not exist. (SYNTAX_ERROR)", ""),
    ],
)  # fmt: skip
def test_what_is_named(text: str, missing: str) -> None:
    assert missing_in(text) == missing

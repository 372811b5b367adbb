"""A replay as rows of the tables `replays` and `replay_decisions`, and stored there."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from queries.replay.result import ClosedLoop, ExactReplay, Replay
from queries.rows import store_rows


def store(url: str, replay: Replay, clickhouse_url: str) -> None:
    """Store a replay through the collector, beside the executions that it was made from.

    The decisions go first: a replay that is listed has all of its decisions.

    Args:
        url: The collector's HTTP port.
        replay: What to store.
        clickhouse_url: Where the executions are.

    Raises:
        QueriesError: no collector answers, it does not take the rows, or it stores in another ClickHouse.
    """
    store_rows(url, "replay_decisions", decision_rows(replay), beside=clickhouse_url)
    store_rows(url, "replays", replay_rows(replay, datetime.now(UTC)), beside=clickhouse_url)


def replay_rows(replay: Replay, made_at: datetime) -> Iterator[dict[str, Any]]:
    """One row for each form."""
    common = {
        "replay_id": replay.replay_id,
        "made_at": made_at,
        "service_instance_id": replay.service_instance_id,
        "cell": replay.cell,
        "cost_model": replay.cost_model,
        "parameters": {**replay.parameters, "recorded_cost_model": replay.recorded_cost_model},
    }
    if replay.exact:
        yield common | {"form": "exact", "results": exact_figures(replay.exact)}
    if replay.closed_loop:
        yield common | {"form": "closed_loop", "results": closed_loop_figures(replay.closed_loop)}


def exact_figures(exact: ExactReplay) -> dict[str, float]:
    """The figures of the exact form, as docs/replay.md defines them."""
    return {
        "decisions": len(exact.decisions),
        "decisions_ordinary": len(exact.ordinary),
        "decisions_different": len(exact.different),
        "decisions_cold": exact.decisions_cold,
        "decisions_unusable": exact.decisions_unusable,
        "different_s": sum(one.graph_wall_time_ns for one in exact.different) / 1e9,
        "agreement": exact.agreement or 0.0,
        "history_executions": exact.history.executions,
        "history_s": exact.history.seconds,
        "from_startup": exact.history.from_startup,
        "executions_lost": exact.history.executions_lost,
    }


def closed_loop_figures(loop: ClosedLoop) -> dict[str, float]:
    """The figures of the closed loop, as docs/replay.md defines them."""
    low, high = loop.interval
    figures = {
        "tokens_per_s": loop.tokens_per_s,
        "tokens_per_s_low": low,
        "tokens_per_s_high": high,
        "error_percent": loop.error_percent,
        "plain_fraction": loop.plain_fraction,
        "recorded_tokens_per_s": loop.recorded_tokens_per_s,
        "recorded_plain_fraction": loop.recorded_plain_fraction,
        "gain_percent": loop.gain_percent,
        "calibration_percent": loop.calibration_percent,
    }
    if loop.recorded_model_percent is not None:
        figures["recorded_model_percent"] = loop.recorded_model_percent
    return figures


def decision_rows(replay: Replay) -> Iterator[dict[str, Any]]:
    """One row for each decision of the exact form."""
    for one in replay.exact.decisions if replay.exact else ():
        yield {
            "replay_id": replay.replay_id,
            "service_instance_id": replay.service_instance_id,
            "cell": replay.cell,
            "graph_sequence": one.graph_sequence,
            "started_at": nanosecond_text(one.started_at),
            "graph_name": one.graph_name,
            "scheduler_estimate_ns": one.scheduler_estimate_ns,
            "replayed_graph_name": one.replayed_graph_name,
            "replayed_estimate_ns": one.replayed_estimate_ns,
            "margin": one.margin,
            "candidate_graphs": one.candidate_graphs,
            "candidate_estimates_ns": one.candidate_estimates_ns,
            "candidate_expected_tokens": one.candidate_expected_tokens,
        }


def nanosecond_text(unix_ns: int) -> str:
    """An instant in UTC, to the nanosecond."""
    seconds, ns = divmod(unix_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{ns:09}"

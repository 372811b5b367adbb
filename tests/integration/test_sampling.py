"""Sampling: what it drops, what it keeps, and that no finding about an anomalous cell changes by it."""

import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from clickhouse_connect.driver.client import Client
from rich.console import Console

from collector.doctor.store import executions_by_day
from collector.judging.judging import judge_cells, settle_hours
from collector.sampling.rules import SamplingRules
from collector.sampling.sampler import Sampler
from collector.sampling.sampling import STRETCHES_AT_ONCE, Sampling
from collector.store.client import StoreClient
from dashboards.words.replays import replay_sentence
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import CELL_WINDOW_NS, GraphKind
from engine_hooks.contract.span import EXECUTION_COLUMNS
from queries.alerts.finding import telling
from queries.errors import UnknownCellError
from queries.findings.findings import Diagnosis, Kind
from queries.findings.stored import find_in_cell
from queries.postmortem.machine import json_of
from queries.postmortem.markdown import markdown_of
from queries.postmortem.perfetto import trace_of
from queries.postmortem.terminal import rendered
from queries.postmortem.told import told
from queries.replay import screen
from queries.replay.replaying import Form, replayed
from queries.runner import run
from queries.terminal import printed
from tests.fixtures.asking import ask
from tests.fixtures.labelled_records import LABELLED, executions_of_cell, truth
from tests.fixtures.query_rows import START_NS, believing, round_of, row_of
from tests.fixtures.simulated_cells import simulated

S_NS: Final = 1_000_000_000
AGO_NS: Final = 3 * 3600 * S_NS
ANOMALIES: Final = (
    *(Kind.ESTIMATE_INFLATION, Kind.HOST_BOUND, Kind.CPU_CONTENTION, Kind.DELAY_BURSTS, Kind.ACCEPTANCE_COLLAPSE),
    *(Kind.GRAPH_REGRESSION, Kind.CLOCK_DRIFT, Kind.PLAIN_RIGHT, Kind.EXECUTIONS_LOST, Kind.CLOCK_AHEAD),
)
RULES: Final = SamplingRules(share=0.0, settled_s=0, keeps_marked=False)
FLEET: Final = (
    "stuck_plain",
    "estimate_inflation",
    "cells",
    "live_stuck",
    "live_inflation",
    "sequence_gaps",
    "lost_executions",
)


def store(client: Client, executions: Iterable[GraphExecution], engine: EngineResource, lag_ns: int = S_NS) -> None:
    """Stored as if each had arrived so long after it ended."""
    rows = [
        [*row_of(one, engine), datetime.fromtimestamp((one.started_at + one.duration_ns + lag_ns) / 1e9, UTC)]
        for one in executions
    ]
    client.insert("new_executions", rows, column_names=[*EXECUTION_COLUMNS, "received_at"])


def moved(executions: Iterable[GraphExecution], cell_started_ns: int, **fields: Any) -> list[GraphExecution]:
    """The same three hours ago, the cell at the start of a window."""
    shift_ns = (time.time_ns() - AGO_NS) // CELL_WINDOW_NS * CELL_WINDOW_NS - cell_started_ns
    return [one._replace(started_at=one.started_at + shift_ns, **fields) for one in executions]


def store_simulated(client: Client, kind: Kind, seed: int) -> str:
    """A cell named `judged`, and what came before it; the engine."""
    record = simulated(kind, seed).record
    began_ns, instance = record.executions[0].started_at, f"{kind}-{seed}"
    before, cell = moved(record.before, began_ns, cell_id=""), moved(record.executions, began_ns, cell_id="judged")
    lag_ns = S_NS if record.arrival_lag_ns is None else record.arrival_lag_ns
    store(client, [*before, *cell], EngineResource(instance, host_name=f"host-{instance}"), lag_ns)
    return instance


def judge(client: Client) -> None:
    judge_cells(client, 86_400, 100)


def reasons(client: Client) -> dict[tuple[str, str], str]:
    query = "SELECT service_instance_id, cell, max(reason) FROM cell_samples GROUP BY ALL"
    return {(engine, cell): reason for engine, cell, reason in client.query(query).result_rows}


def left(client: Client) -> dict[tuple[str, str], int]:
    query = "SELECT service_instance_id, cell, count() FROM graph_executions GROUP BY ALL"
    return {(engine, cell): count for engine, cell, count in client.query(query).result_rows}


def answers(url: str) -> dict[str, list[str]]:
    """What a fleet's queries say, of all the time there is; of floats as many digits as the order of summing leaves."""

    def text(row: dict[str, Any]) -> str:
        return str([f"{value:.9g}" if isinstance(value, float) else value for value in row.values()])

    return {name: sorted(text(row) for row in run(name, url, "rows")) for name in FLEET}


def test_no_finding_about_an_anomalous_cell_changes_and_healthy_ones_go(
    clickhouse: Client, clickhouse_url: str
) -> None:
    anomalous = [store_simulated(clickhouse, kind, 1) for kind in ANOMALIES]
    healthy = [store_simulated(clickhouse, Kind.HEALTHY, seed) for seed in range(4)]
    judge(clickhouse)
    before, whole = answers(clickhouse_url), left(clickhouse)
    diagnoses = {engine: find_in_cell(clickhouse_url, engine, "judged") for engine in anomalous}
    sampled = Sampling(clickhouse, RULES).run()
    after, kept = answers(clickhouse_url), left(clickhouse)
    assert {engine for engine in anomalous if not reasons(clickhouse)[engine, "judged"]} == set()
    assert {engine: find_in_cell(clickhouse_url, engine, "judged") for engine in anomalous} == diagnoses
    assert {cell: count for cell, count in kept.items() if cell[0] in anomalous} == {
        cell: count for cell, count in whole.items() if cell[0] in anomalous
    }
    assert after == before
    gone = {engine for engine in healthy if (engine, "judged") not in kept}
    assert len(gone) >= 2
    assert sampled.dropped_executions == sum(whole.values()) - sum(kept.values()) > 0


def test_labelled_cells_that_have_anything_about_them_are_kept(clickhouse: Client, cases: Path) -> None:
    for name in LABELLED:
        executions = executions_of_cell(cases / "cells", name)
        store(clickhouse, moved(executions, executions[0].started_at), EngineResource(name, host_name=name))
    judge(clickhouse)
    Sampling(clickhouse, RULES).run()
    found = {engine: reason for (engine, _), reason in reasons(clickhouse).items()}
    quiet = {"healthy", "no_speculation"}
    labels = {name: truth(cases / "cells")[name] for name in LABELLED}
    assert [name for name, right in labels.items() if right["label"] not in quiet and not found[name]] == []


def steady(seconds: int, sequence: int = 0, round_ms: float = 20.0) -> list[GraphExecution]:
    """An engine that does the same round after round."""
    charged = believing({"decode": (round_ms / 2, 4.0), "P128": (round_ms, 12.0)})
    made = [
        round_of(sequence + n, n * round_ms, "P128", round_ms, **charged)._replace(duration_ns=int(2e6 * round_ms))
        for n in range(int(seconds * 1000 / round_ms))
    ]
    return moved(made, START_NS)


def test_what_is_near_an_odd_cell_is_kept_and_what_is_far_goes(clickhouse: Client) -> None:
    rounds = steady(1500, round_ms=200.0)
    late = next(n for n, one in enumerate(rounds) if one.started_at >= rounds[0].started_at + 1485 * S_NS)
    rounds[late] = rounds[late]._replace(graph_wall_time_ns=290_000_000)
    store(clickhouse, rounds, EngineResource("near", host_name="a"))
    judge(clickhouse)
    Sampling(clickhouse, RULES).run()
    began_s = rounds[0].started_at // S_NS
    kept = sorted((int(cell) - began_s) // 30 for _, cell in left(clickhouse))
    # The odd cell began at 1,470 s; 600 s before that lies in the 30th.
    assert kept == list(range(29, 50))


def judged(client: Client, url: str, rounds: list[GraphExecution], at: int) -> tuple[str, Diagnosis]:
    """Store them as the engine `whole`, and judge: the cell of one of them, and what is found in it."""
    store(client, rounds, EngineResource("whole", host_name="a"))
    judge(client)
    cell = str(rounds[at].started_at // CELL_WINDOW_NS * 30)
    return cell, find_in_cell(url, "whole", cell)


def test_a_graph_that_became_slower_and_was_hardly_chosen_again_is_kept(
    clickhouse: Client, clickhouse_url: str
) -> None:
    """Nine slow executions do not move the median of 5 s; they are a finding."""
    rounds = steady(60)
    slower = rounds.index(next(one for one in rounds if one.started_at >= rounds[0].started_at + 33 * S_NS))
    for n, one in enumerate(rounds):
        if n >= slower + 9 or n % 25 == 0:
            rounds[n] = one._replace(graph_name="P64")
        elif n >= slower:
            rounds[n] = one._replace(graph_gpu_time_ns=26_000_000, graph_wall_time_ns=26_000_000)
    cell, found = judged(clickhouse, clickhouse_url, rounds, slower)
    assert Kind.GRAPH_REGRESSION in {one.kind for one in found.findings}
    Sampling(clickhouse, RULES).run()
    assert reasons(clickhouse)["whole", cell] == "GPU times moved"
    assert find_in_cell(clickhouse_url, "whole", cell) == found


def test_acceptance_that_fell_is_seen_where_another_graph_was_chosen_at_once(
    clickhouse: Client, clickhouse_url: str
) -> None:
    """Each graph's own share of drafts stays what it was."""
    chance = np.random.default_rng(1)

    def accepted(each: float, drafts: int) -> int:
        return int(np.cumprod(chance.random((4, drafts)) < each, axis=1).sum())

    rounds = steady(60)
    fell = next(n for n, one in enumerate(rounds) if one.started_at >= rounds[0].started_at + 33 * S_NS)
    charged = believing({"decode": (15, 4.0), "P128": (20, 12.7), "P32": (20, 7.4)})
    for n, one in enumerate(rounds):
        graph, drafts = ("P128", 3) if n < fell + 12 else ("P32", 1)
        tokens = accepted(0.85 if n < fell else 0.45, drafts)
        given = {
            "batch_tokens_drafted": 4 * drafts,
            "batch_tokens_accepted": tokens,
            "batch_tokens_emitted": 4 + tokens,
        }
        rounds[n] = one._replace(graph_name=graph, **given, **charged)
    cell, found = judged(clickhouse, clickhouse_url, rounds, fell)
    assert Kind.ACCEPTANCE_COLLAPSE in {one.kind for one in found.findings}
    Sampling(clickhouse, RULES).run()
    assert reasons(clickhouse)["whole", cell] == "acceptance moved"


def test_lost_executions_across_cells_and_a_share_and_marks_keep_cells(clickhouse: Client) -> None:
    store(clickhouse, steady(60), EngineResource("whole", host_name="a"))
    first, second = steady(30), steady(60, 7)[1500:]
    store(clickhouse, [*first, *second], EngineResource("gap", host_name="b"))
    store(clickhouse, [one._replace(cell_id="bench") for one in steady(30)], EngineResource("marked", host_name="c"))
    judge(clickhouse)
    Sampling(clickhouse, RULES._replace(keeps_marked=True)).run()
    found = reasons(clickhouse)
    assert found["marked", "bench"] == "marked"
    assert [reason for (engine, _), reason in sorted(found.items()) if engine == "gap"] == ["", "executions lost"]
    assert {engine for engine, _ in left(clickhouse)} == {"gap", "marked"}
    store(clickhouse, steady(60), EngineResource("shared", host_name="d"))
    judge(clickhouse)
    Sampling(clickhouse, RULES._replace(share=1.0)).run()
    assert {reason for (engine, _), reason in reasons(clickhouse).items() if engine == "shared"} == {"share"}
    assert sum(count for (engine, _), count in left(clickhouse).items() if engine == "shared") == 3000


def test_nothing_goes_before_its_verdict_is_final_and_old_enough(clickhouse: Client) -> None:
    store(clickhouse, steady(60), EngineResource("whole", host_name="a"))
    assert Sampling(clickhouse, RULES).run() == (0, 0, 0)
    judge(clickhouse)
    assert Sampling(clickhouse, RULES._replace(settled_s=600)).run() == (0, 0, 0)
    assert len(left(clickhouse)) == 2
    assert Sampling(clickhouse, RULES).run().dropped_executions == 3000
    assert Sampling(clickhouse, RULES).run().dropped_executions == 3000


def test_what_was_dropped_is_told(clickhouse: Client, clickhouse_url: str) -> None:
    rounds = steady(30)
    store(clickhouse, rounds, EngineResource("whole", host_name="a"))
    judge(clickhouse)
    day = datetime.fromtimestamp((rounds[-1].started_at + 2 * S_NS) / S_NS, UTC).date()
    before = executions_by_day(clickhouse, day)
    Sampling(clickhouse, RULES).run()
    assert left(clickhouse) == {}
    assert executions_by_day(clickhouse, day) == before
    cell = str(rounds[0].started_at // S_NS)
    (row,) = run("sampled_cells", clickhouse_url, "rows")
    assert (row["cell"], row["fate"], row["executions"]) == (cell, "dropped", 1500)
    with pytest.raises(UnknownCellError, match="sampling dropped"):
        find_in_cell(clickhouse_url, "whole", cell)
    (told,) = run("cells", clickhouse_url, "rows")
    assert (told["executions"], told["stuck"]) == (1500, False)


def test_of_a_dropped_cell_what_came_late_is_never_told_as_the_whole(clickhouse: Client, clickhouse_url: str) -> None:
    rounds = steady(30)
    store(clickhouse, rounds[:-50], EngineResource("whole", host_name="a"))
    judge(clickhouse)
    Sampling(clickhouse, RULES).run()
    store(clickhouse, rounds[-50:], EngineResource("whole", host_name="a"), 900 * S_NS)
    cell = str(rounds[0].started_at // S_NS)
    story = told(clickhouse_url, cell, "whole").story
    assert (story.executions, story.executions_dropped) == (50, 1450)
    assert story.headline.startswith("Sampling dropped 1,450 executions of this cell: ")
    assert markdown_of(story).startswith(f"## {story.headline}\n")
    assert "Sampling dropped 1,450" in " ".join(printed(rendered(story, with_sql=False)).decode().splitlines()[:3])
    assert json_of(story)["executions_dropped"] == 1450
    replay = replayed(clickhouse_url, "whole", cell, "drained_share", form=Form.EXACT)
    assert replay.executions_dropped == 1450
    with (console := Console(width=200)).capture() as shown:
        screen.show(console, replay)
    assert shown.get().splitlines()[1].startswith("Sampling dropped 1,450 executions of this cell: ")
    document = screen.as_json(replay)
    assert document["executions_dropped"] == 1450
    assert document["sampled_away"].startswith("Sampling dropped 1,450 executions of this cell: ")
    assert replay.exact
    assert replay_sentence(replay, replay.exact).startswith("Sampling dropped 1,450 executions of this cell: ")


def test_alerts_and_timelines_of_a_dropped_cell_begin_with_what_is_gone(
    clickhouse: Client, clickhouse_url: str
) -> None:
    """What came late is all that they are told of, and it is not well."""
    rounds = steady(30)
    store(clickhouse, rounds[:-50], EngineResource("whole", host_name="a"))
    judge(clickhouse)
    Sampling(clickhouse, RULES).run()
    in_plain = {"graph_name": "decode", "graph_kind": GraphKind.PLAIN_DECODE, "batch_tokens_emitted": 4}
    late = [one._replace(**in_plain) for one in rounds[-50:]]
    store(clickhouse, late, EngineResource("whole", host_name="a"), 900 * S_NS)
    cell = str(rounds[0].started_at // S_NS)
    alert = telling(clickhouse_url)("whole", cell)
    assert "tokens/s lost in that cell" in alert
    one = told(clickhouse_url, cell, "whole")
    timeline = trace_of(one.recorded, one.story.diagnosis)
    assert timeline["otherData"]["executions_dropped"] == 1450
    (mark,) = [event for event in timeline["traceEvents"] if event["ph"] == "i" and event["cat"] == "sampling"]
    assert (mark["s"], mark["ts"]) == ("g", 0)
    said = alert.splitlines()[0]
    assert said.startswith("Sampling dropped 1,450 executions of this cell: ")
    assert mark["name"] == said
    assert one.story.headline.startswith(said)


def test_what_was_dropped_is_no_difference_and_hides_none(clickhouse: Client) -> None:
    rounds = steady(90)
    store(clickhouse, rounds[:-50], EngineResource("whole", host_name="a"))
    kept = [*steady(30), *steady(60, 7)[1500:]]
    store(clickhouse, kept, EngineResource("kept", host_name="b"))
    over_windows = [one._replace(cell_id="bench") for one in steady(60)]
    store(clickhouse, over_windows, EngineResource("marked", host_name="c"))
    began, ended = (datetime.fromtimestamp(rounds[n].started_at / 1e9, UTC) for n in (0, -1))

    def differences() -> set[tuple[Any, ...]]:
        settle_hours(clickhouse, began, ended, every_s=0)
        names = ("service_instance_id", "rollup", "executions_stored", "executions_rolled_up")
        found = ask(clickhouse, "rollup_differences", **{"from": began - timedelta(hours=2)})
        return {(*(row[name] for name in names), *row["differing"]) for row in found}

    judge(clickhouse)
    assert differences() == set()
    Sampling(clickhouse, RULES).run()
    assert {engine for engine, _ in left(clickhouse)} == {"kept"}
    assert differences() == set()
    store(clickhouse, rounds[-50:], EngineResource("whole", host_name="a"), 900 * S_NS)
    assert differences() == set()
    for table, of, started, fewer in (
        ("cell_graphs", "kept", "window_started_at", "executions - 1"),
        ("cell_windows", "whole", "window_started_at", "executions - 1"),
        ("engine_half_hours", "whole", "half_hour_started_at", "executions - 1"),
        ("engine_seconds", "whole", "second_started_at", "executions - 1"),
        ("graph_hours", "whole", "hour_started_at", "arrayMap(n -> n - 1, executions)"),
    ):
        latest = clickhouse.query(
            "SELECT max({started:Identifier}) FROM {table:Identifier} WHERE service_instance_id = {of:String}",
            parameters={"started": started, "table": table, "of": of},
        ).first_row[0]
        clickhouse.command(
            f"ALTER TABLE {table} UPDATE executions = {fewer} WHERE service_instance_id = '{of}'"
            f" AND {started} = '{latest:%Y-%m-%d %H:%M:%S}' SETTINGS mutations_sync = 1"
        )
    names = ("service_instance_id", "rollup")
    found = ask(clickhouse, "rollup_differences", **{"from": began - timedelta(hours=2)})
    assert sorted((*(row[name] for name in names), row["executions_stored"], *row["differing"]) for row in found) == [
        ("kept", "cell_graphs", 1500, "executions"),
        ("whole", "cell_windows", 50, "executions"),
        ("whole", "engine_half_hours", 50, "executions"),
        ("whole", "engine_seconds", 50, "executions"),
        ("whole", "graph_hours", 50, "executions"),
    ]


def test_a_clock_beyond_reason_stops_nothing(clickhouse: Client) -> None:
    (odd,) = steady(1)[:1]
    ends_of_time = (0, 9_223_372_036_000_000_000 - odd.duration_ns)
    rows = [[*row_of(odd._replace(started_at=at), EngineResource("odd")), datetime.now(UTC)] for at in ends_of_time]
    clickhouse.insert("new_executions", rows, column_names=[*EXECUTION_COLUMNS, "received_at"])
    store(clickhouse, steady(60), EngineResource("whole", host_name="a"))
    judge(clickhouse)
    assert Sampling(clickhouse, RULES).run().dropped_executions == 3000
    assert sum(count for (engine, _), count in left(clickhouse).items() if engine == "odd") == 2


def test_a_cell_that_more_arrives_for_after_it_was_examined_is_examined_again(clickhouse: Client) -> None:
    rounds = steady(60)
    store(clickhouse, rounds[:-50], EngineResource("whole", host_name="a"))
    judge(clickhouse)
    sampling = Sampling(clickhouse, RULES)
    sampling.examine()
    store(clickhouse, rounds[-50:], EngineResource("whole", host_name="a"), 900 * S_NS)
    assert sampling.drop() == 0
    judge(clickhouse)
    assert sampling.run() == (2, 0, 0)
    assert sorted(reasons(clickhouse).values()) == ["", "clock trouble"]
    assert sum(left(clickhouse).values()) == 3000


def test_what_arrives_while_a_look_drops_is_late_and_stays(clickhouse: Client, clickhouse_url: str) -> None:
    """Between the question and its deletions lie those of other cells, and on large fleets minutes."""
    rounds = steady(60)
    early, late = rounds[:-50], rounds[-50:]

    class Overtaken(Sampling):
        def _query(self, sql: str, values: dict[str, Any]) -> list[Any]:
            rows = super()._query(sql, values)
            if {"cells_max", "part"} <= values.keys():
                store(clickhouse, late, EngineResource("whole", host_name="a"), 900 * S_NS)
            return rows

    store(clickhouse, early, EngineResource("whole", host_name="a"))
    judge(clickhouse)
    sampling = Overtaken(clickhouse, RULES)
    sampling.examine()
    assert sampling.drop() == 2
    cell = str(late[0].started_at // S_NS // 30 * 30)
    assert left(clickhouse) == {("whole", cell): 50}
    assert sampling.told() == (2, 2, 2950)
    assert judge_cells(clickhouse, 86_400, 100) > 0
    story = told(clickhouse_url, cell, "whole").story
    assert (story.executions, story.executions_dropped) == (50, 1450)
    assert Sampling(clickhouse, RULES).run() == (2, 2, 2950)
    assert left(clickhouse) == {("whole", cell): 50}


def test_cells_whose_executions_are_gone_hold_up_no_others(clickhouse: Client) -> None:
    for n in range(STRETCHES_AT_ONCE):
        earlier = [one._replace(started_at=one.started_at - (n + 1) * 600 * S_NS) for one in steady(2)]
        store(clickhouse, earlier, EngineResource(f"gone-{n}", host_name="a"))
    judge(clickhouse)
    clickhouse.command("TRUNCATE TABLE graph_executions")
    store(clickhouse, steady(60), EngineResource("whole", host_name="b"))
    judge(clickhouse)
    sampling = Sampling(clickhouse, RULES)
    sampling.run()
    assert set(reasons(clickhouse).values()) == {"executions lost"}
    assert sampling.run().dropped_executions == 3000
    assert left(clickhouse) == {}


def test_cells_may_be_left_alone_for_longer_than_two_days(clickhouse: Client) -> None:
    # Nine hours before the verdict: sampling looks back by whole days, two more than cells are left alone.
    rounds = [one._replace(started_at=one.started_at - (8 * 24 + 6) * 3600 * S_NS) for one in steady(60)]
    store(clickhouse, rounds, EngineResource("whole", host_name="a"))
    judging = files("collector.judging").joinpath("judge_cells.sql").read_text("utf-8")
    judged_then = judging.replace("now64(3, 'UTC')", "subtractDays(now64(3, 'UTC'), 8)")
    stretch = [datetime.fromtimestamp(rounds[n].started_at / 1e9 + s, UTC) for n, s in ((0, -1), (-1, 600))]
    clickhouse.command(judged_then, parameters={"from": stretch[0], "to": stretch[1]})
    assert Sampling(clickhouse, RULES._replace(settled_s=7 * 86_400)).run() == (2, 2, 3000)


def test_a_sampler_that_starts_anew_tells_what_was_dropped_and_goes_on_at_once(clickhouse: Client) -> None:
    store(clickhouse, steady(60), EngineResource("whole", host_name="a"))
    judge(clickhouse)
    Sampling(clickhouse, RULES).run()
    store(clickhouse, steady(60), EngineResource("later", host_name="b"))
    judge(clickhouse)
    looked = threading.Event()

    class Looking(Sampler):
        def see_to_it(self) -> None:
            super().see_to_it()
            looked.set()

    sampler = Looking(StoreClient(lambda: clickhouse), RULES, every_s=3600)
    sampler.start()
    try:
        assert looked.wait(60)
    finally:
        sampler.stop()
    assert sampler.sampled == (4, 4, 6000)
    assert left(clickhouse) == {}


def test_a_sampler_that_is_to_end_begins_nothing_more(clickhouse: Client) -> None:
    """After an outage a look may have minutes to do, and a collector that stops waits for it."""
    store(clickhouse, steady(60), EngineResource("whole", host_name="a"))
    judge(clickhouse)
    looking = threading.Event()

    class Stopped(Sampler):
        def see_to_it(self) -> None:
            looking.set()
            assert self._stopping.wait(60)
            super().see_to_it()

    sampler = Stopped(StoreClient(lambda: clickhouse), RULES, every_s=3600)
    sampler.start()
    assert looking.wait(60)
    sampler.stop()
    with sampler.resting():
        assert (sampler.look_state.failed_looks, sampler.sampled) == (0, (0, 0, 0))
        assert sum(left(clickhouse).values()) == 3000
    assert Sampling(clickhouse, RULES).run().dropped_executions == 3000

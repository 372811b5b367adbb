"""Sampling's bounds, one after the other: a cell that lies just beyond one is kept by that reason, one just within it is not.

Each engine here does the same round of 100 ms for 30 s, 50 rounds in each 5 s, but for what its name says.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from clickhouse_connect.driver.client import Client

from collector.sampling.sampling import Sampling
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind, Purpose
from tests.fixtures.query_rows import MS, believing
from tests.integration.test_sampling import RULES, S_NS, judge, left, reasons, steady, store

Rounds = list[GraphExecution]
ROUND_NS: Final = 100 * MS
MIDDLE: Final = 120


def quiet(seconds: int = 30) -> Rounds:
    return steady(seconds, round_ms=100.0)


def changed(at: Iterable[int], rounds: Rounds | None = None, **fields: Any) -> Rounds:
    """With these rounds other than they were."""
    rounds = rounds or quiet()
    for n in at:
        rounds[n] = rounds[n]._replace(**fields)
    return rounds


def took(at: Iterable[int], gpu_ns: int, rounds: Rounds | None = None, **fields: Any) -> Rounds:
    """With these rounds of another length on the device, which never waits."""
    return changed(at, rounds, graph_gpu_time_ns=gpu_ns, graph_wall_time_ns=gpu_ns, **fields)


def submitted_late(late_ns: int, gpu_ns: int = ROUND_NS, **fields: Any) -> Rounds:
    """One round whose submission came late, and whose end did not."""
    rounds = took([MIDDLE], gpu_ns, **fields)
    one = rounds[MIDDLE]
    at = {"started_at": one.started_at + late_ns, "duration_ns": one.duration_ns - late_ns}
    return changed([MIDDLE], rounds, **at)


def waiting_for_results(late_ns: int, waited_ns: int) -> Rounds:
    """Every round is submitted when the one before has ended, and the device waits for that."""
    rounds = changed(range(300), graph_completion_feedback=True, duration_ns=ROUND_NS - late_ns)
    return changed(range(300), rounds, graph_wall_time_ns=ROUND_NS + waited_ns)


def in_plain(count: int, **fields: Any) -> Rounds:
    """Some of 300 rounds in plain decode, which takes as long and is charged so."""
    fair = changed(range(300), **believing({"decode": (100, 4.0), "P128": (100, 12.0)}))
    plain = {"graph_name": "decode", "graph_kind": GraphKind.PLAIN_DECODE, "batch_tokens_emitted": 4}
    return changed(range(count), fair, **(plain | fields))


def without_speculation() -> Rounds:
    return in_plain(300, **believing({"decode": (100, 4.0)}))


def accepting(by_slice: Iterable[tuple[str, int, int]]) -> Rounds:
    """By 5 s: the graph, what it drafted a round (P128 in 4 lanes, P32 one a lane), and how many of 1,000 were accepted."""
    rounds = quiet()
    charged = believing({"decode": (50, 4.0), "P128": (100, 12.0), "P32": (100, 12.0)})
    for n, (graph, drafted, share) in enumerate(by_slice):
        accepted = round(50 * drafted * share / 1000)
        for k in range(50):
            tokens = accepted * (k + 1) // 50 - accepted * k // 50
            given = {"batch_tokens_drafted": drafted, "batch_tokens_accepted": tokens}
            lanes = 4 if graph == "P128" else drafted
            changed([50 * n + k], rounds, graph_name=graph, batch_lanes=lanes, **given, **charged)
    return rounds


def of_two_cells(at: Iterable[int], gpu_ns: int) -> Rounds:
    """180 s, of which the last 30 are asked for."""
    return took(at, gpu_ns, quiet(180))


def kept(
    client: Client, made: dict[str, Callable[[], Rounds]], lags_ns: dict[str, int] | None = None
) -> dict[str, str]:
    """The reason of each engine's last cell."""
    for name, make in made.items():
        store(client, make(), EngineResource(name, host_name=name), (lags_ns or {}).get(name, S_NS))
    judge(client)
    Sampling(client, RULES).examine()
    found = reasons(client)
    last = {name: max(cell for engine, cell in found if engine == name) for name in made}
    return {name: found[name, cell] for name, cell in last.items()}


def test_the_bounds_of_a_late_host(clickhouse: Client) -> None:
    made: dict[str, Callable[[], Rounds]] = {
        "the device waited 3 ms": lambda: changed([MIDDLE], graph_wall_time_ns=ROUND_NS + 3 * MS),
        "the host took 4 ms": lambda: submitted_late(4 * MS),
        "the host took 4 ms on an idle device": lambda: changed(
            [MIDDLE - 1], submitted_late(4 * MS), duration_ns=ROUND_NS + 3 * MS
        ),
        "the host took longer than the device": lambda: submitted_late(2 * MS + 1, 2 * MS),
        # 2.01 ms of every 100: 2.01 %.
        "the device waited 2 % of all": lambda: changed(range(300), graph_wall_time_ns=102_010_000),
        "within: waited": lambda: changed([MIDDLE], graph_wall_time_ns=ROUND_NS + 3 * MS - 1),
        "within: host": lambda: submitted_late(4 * MS - 1),
        "within: as long as the device": lambda: submitted_late(2 * MS, 2 * MS),
        "within: 2 % of all": lambda: changed(range(300), graph_wall_time_ns=102_000_000),
        "within: after idle": lambda: submitted_late(50 * MS, graph_after_idle=True),
        "within: a prefill": lambda: submitted_late(3 * MS, 2 * MS, graph_kind=GraphKind.PREFILL),
        # Each waits for the results of the one before: 2.9 ms of the device, and of the host, are no lateness.
        "within: feedback": lambda: waiting_for_results(0, 2_900_000),
        # Its host took 5 ms from when it could see them.
        "within: feedback, host": lambda: waiting_for_results(5 * MS, 1 * MS),
    }
    assert kept(clickhouse, made) == {name: "" if name.startswith("within") else "late host" for name in made}


def test_the_bounds_of_clock_trouble(clickhouse: Client) -> None:
    made: dict[str, Callable[[], Rounds]] = {
        "GPU time above wall time": lambda: changed([MIDDLE], graph_wall_time_ns=ROUND_NS - 1),
        "a start before its submission": lambda: changed([MIDDLE], graph_gpu_start_offset_ns=-1),
        "arrival before the end": quiet,
        "arrival 62 s after it": quiet,
        "within: a start at its submission": lambda: changed([MIDDLE], graph_gpu_start_offset_ns=0),
        "within: arrival at the end": quiet,
        "within: arrival 59 s after it": quiet,
    }
    lags_ns = {
        "arrival before the end": -1 * MS,
        "arrival 62 s after it": 62 * S_NS,
        "within: arrival at the end": 0,
        "within: arrival 59 s after it": 59 * S_NS,
    }
    found = kept(clickhouse, made, lags_ns)
    assert found == {name: "" if name.startswith("within") else "clock trouble" for name in made}


def test_the_bounds_of_gpu_times_that_moved(clickhouse: Client) -> None:
    two_slices = range(50, 100), range(150, 200)
    two_slices_of_five = [*range(100, 105), *range(150, 155)]

    def swinging(least_ns: int, most_ns: int) -> Rounds:
        return took(two_slices[1], most_ns, took(two_slices[0], least_ns))

    def rare(slow: int, other: int) -> Rounds:
        """A graph that is executed so often in 5 s, the slow ones in a row."""
        rounds = changed(range(100, 100 + slow + other), graph_name="P64")
        return took(range(100, 100 + slow), 103 * MS, rounds)

    def uneven_in_two_slices() -> Rounds:
        """A graph that is executed five times in each; 101.5 / 98.9 = 1.0263, but never five in a row took so long."""
        rounds = took([*range(100, 105), 153, 154], 98_900_000, changed(two_slices_of_five, graph_name="P64"))
        return took(range(150, 153), 101_500_000, rounds)

    made: dict[str, Callable[[], Rounds]] = {
        # 101.3 / 98.75 = 1.0258; neither is 2 % from the median of all.
        "a median from 5 s to 5 s": lambda: swinging(98_750_000, 101_300_000),
        "a median of two": uneven_in_two_slices,
        "five in a row, slower": lambda: took(range(MIDDLE, MIDDLE + 5), 102_010_000),
        # 100 / 98 = 1.0204.
        "five in a row, faster": lambda: took(range(MIDDLE, MIDDLE + 5), 98_000_000),
        "120 s before": lambda: of_two_cells(range(300, 350), 103 * MS),
        "five of ten": lambda: rare(5, 5),
        # 101.2 / 98.75 = 1.0248.
        "within: a median": lambda: swinging(98_750_000, 101_200_000),
        "within: slower": lambda: took(range(MIDDLE, MIDDLE + 5), 101_990_000),
        # 100 / 98.05 = 1.0199.
        "within: faster": lambda: took(range(MIDDLE, MIDDLE + 5), 98_050_000),
        "within: four in a row": lambda: took(range(MIDDLE, MIDDLE + 4), 110 * MS),
        "within: longer ago": lambda: of_two_cells(range(250, 300), 103 * MS),
        "within: four of nine": lambda: rare(4, 5),
        "within: prefills": lambda: took(range(50), 200 * MS, graph_kind=GraphKind.PREFILL, graph_name="P"),
        "within: a graph that was not executed": lambda: changed(
            range(150), of_two_cells(range(100), 103 * MS), graph_name="P64"
        ),
    }
    assert kept(clickhouse, made) == {name: "" if name.startswith("within") else "GPU times moved" for name in made}


def test_the_bounds_of_acceptance_that_moved(clickhouse: Client) -> None:
    """Of 12 drafts in 4 lanes, three deep, one chance of 0.7 accepts (0.7 + 0.49 + 0.343) / 3 = 0.511."""
    at_chance = ("P128", 12, 511)
    made: dict[str, Callable[[], Rounds]] = {
        "a graph's own": lambda: accepting([("P128", 12, 500)] * 3 + [("P128", 12, 562)] * 3),
        # One draft a lane is accepted as often as its chance.
        "the chance of another graph": lambda: accepting([at_chance] * 3 + [("P32", 10, 762)] * 3),
        "of 500 drafts in 5 s": lambda: accepting([("P32", 10, 500)] * 5 + [("P32", 10, 400)]),
        "within: a graph's own": lambda: accepting([("P128", 12, 500)] * 3 + [("P128", 12, 558)] * 3),
        "within: another chance": lambda: accepting([at_chance] * 3 + [("P32", 10, 756)] * 3),
        "within: the same chance": lambda: accepting([at_chance] * 3 + [("P32", 10, 700)] * 3),
        "within: 450 drafts in 5 s": lambda: accepting([("P32", 10, 500)] * 5 + [("P32", 9, 400)]),
    }
    assert kept(clickhouse, made) == {name: "" if name.startswith("within") else "acceptance moved" for name in made}


def test_the_bounds_of_plain_decode(clickhouse: Client) -> None:
    made: dict[str, Callable[[], Rounds]] = {
        "46 of 300 rounds": lambda: in_plain(46),
        "within: 45 of 300 rounds": lambda: in_plain(45),
        "within: refreshes": lambda: in_plain(100, graph_purpose=Purpose.REFRESH),
        "within: nothing else to choose": without_speculation,
    }
    assert kept(clickhouse, made) == {name: "" if name.startswith("within") else "stuck in plain" for name in made}


def test_plain_decode_is_told_of_all_windows_of_a_marked_cell(clickhouse: Client) -> None:
    def in_second_window(count: int) -> Rounds:
        fair = believing({"decode": (100, 4.0), "P128": (100, 12.0)})
        rounds = changed(range(600), quiet(60), cell_id="bench", **fair)
        plain = {"graph_name": "decode", "graph_kind": GraphKind.PLAIN_DECODE, "batch_tokens_emitted": 4}
        return changed(range(400, 400 + count), rounds, **plain)

    # 0.152 and 0.148 of 600 rounds.
    made: dict[str, Callable[[], Rounds]] = {
        "91 of 600": lambda: in_second_window(91),
        "within: 89 of 600": lambda: in_second_window(89),
    }
    assert kept(clickhouse, made) == {"91 of 600": "stuck in plain", "within: 89 of 600": ""}


def test_a_graph_charged_too_much_is_enough_where_no_decision_turned(clickhouse: Client) -> None:
    """12 tokens in 115 ms are still more than 4 in 50."""

    def charged(p128_ms: float) -> Rounds:
        return changed(range(100, 150), **believing({"decode": (50, 4.0), "P128": (p128_ms, 12.0)}))

    made: dict[str, Callable[[], Rounds]] = {
        "overcharged": lambda: charged(115),
        "within: overcharged": lambda: charged(103),
    }
    assert kept(clickhouse, made) == {"overcharged": "inflated or turned", "within: overcharged": ""}
    judgements = "SELECT max(judgement.decisions_turned) FROM cell_windows"
    assert clickhouse.query(judgements).result_rows == [(0,)]


def test_beside_cells_with_a_final_verdict_those_without_one_are_not_examined(clickhouse: Client) -> None:
    store(clickhouse, quiet(), EngineResource("judged", host_name="a"))
    ended_ago_ns = time.time_ns() - quiet()[-1].started_at
    # Judged, but within 600 s of its arrival: it will be judged once more.
    store(clickhouse, quiet(), EngineResource("just arrived", host_name="b"), ended_ago_ns - 300 * S_NS)
    judge(clickhouse)
    store(clickhouse, quiet(), EngineResource("not judged", host_name="c"))
    Sampling(clickhouse, RULES).run()
    assert {engine: reason for (engine, _), reason in reasons(clickhouse).items()} == {"judged": ""}
    assert {engine for engine, _ in left(clickhouse)} == {"just arrived", "not judged"}


def test_what_is_near_either_end_of_a_long_odd_cell_is_kept(clickhouse: Client) -> None:
    """A marked cell from 900 s to 2,100 s, over forty windows: 600 s before it and after it is everything kept."""
    rounds = steady(3000, round_ms=1000.0)
    changed(range(900, 2100), rounds, cell_id="bench")
    changed([1500], rounds, graph_wall_time_ns=1_290_000_000)
    store(clickhouse, rounds, EngineResource("near", host_name="a"))
    judge(clickhouse)
    Sampling(clickhouse, RULES).run()
    began_s = rounds[0].started_at // S_NS
    kept_cells = left(clickhouse)
    assert kept_cells.pop(("near", "bench")) == 1200
    # The last of the 10th began at 299 s; the 91st begins at 2,700 s, more than 600 s after 2,099 s.
    assert sorted((int(cell) - began_s) // 30 for _, cell in kept_cells) == [*range(10, 30), *range(70, 90)]


def test_what_is_missing_in_the_store_or_was_numbered_twice_is_lost(clickhouse: Client) -> None:
    def numbered_twice() -> Rounds:
        rounds = quiet()
        return [*rounds, rounds[-1]._replace(started_at=rounds[-1].started_at + 1000)]

    made: dict[str, Callable[[], Rounds]] = {
        "one is missing": lambda: [one for n, one in enumerate(quiet()) if n != MIDDLE],
        "a number twice": numbered_twice,
        "the store lost the first": quiet,
    }
    for name, make in made.items():
        store(clickhouse, make(), EngineResource(name, host_name=name))
    judge(clickhouse)
    clickhouse.command(
        "ALTER TABLE graph_executions DELETE WHERE service_instance_id = 'the store lost the first'"
        " AND graph_sequence < 3 SETTINGS mutations_sync = 1"
    )
    Sampling(clickhouse, RULES).run()
    assert {engine: reason for (engine, _), reason in reasons(clickhouse).items()} == dict.fromkeys(
        made, "executions lost"
    )
    assert sum(left(clickhouse).values()) == 299 + 301 + 297

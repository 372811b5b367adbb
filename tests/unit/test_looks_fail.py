"""A look that fails, and goes on failing, is told: in the log, in figures, to the doctor."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from collector.acceptance import StoreUnavailableError
from collector.doctor.check import Check, ToldErrors, Verdict
from collector.doctor.door_checks import check_looks
from collector.repeated_look import LookState, RepeatedLook
from collector.telemetry.own_metrics import LookMetrics

REFUSED = "Code: 60. DB::Exception: Unknown table expression identifier 'x'"


class Look(RepeatedLook):
    """Fails as it is told, by a clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.fault: Exception | None = None
        super().__init__("judging", "cells not judged", 10.0, clock=lambda: self.now_s)

    def see_to_it(self) -> None:
        if self.fault:
            raise self.fault

    def looks(self, *faults: Exception | None) -> list[dict[str, Any]]:
        """One look for each, ten seconds apart; what the log says of them."""
        with capture_logs() as told:
            for self.fault in faults:
                self.now_s += 10
                self.look_once()
        return [dict(line) for line in told]


@pytest.fixture
def look() -> Look:
    return Look()


def test_what_fails_once_is_a_warning_and_what_fails_again_an_error_with_its_time(look: Look) -> None:
    refused = StoreUnavailableError(f"{REFUSED}\nmore of it")
    first, *_, last = look.looks(*[refused] * 7)
    assert (first["log_level"], first["event"], first["error"]) == ("warning", "cells not judged", REFUSED)
    assert (last["log_level"], last["event"], last["error"]) == ("error", "cells not judged", REFUSED)
    assert (last["failed_in_row"], last["failing_s"]) == (7, 60)


def test_the_state_tells_since_when_and_why(look: Look) -> None:
    assert look.look_state == LookState("", done_s_ago=0.0)
    look.looks(None, StoreUnavailableError("away"), StoreUnavailableError(REFUSED))
    look.now_s += 5
    assert look.look_state == LookState(
        "cells not judged", done_s_ago=25.0, failed_looks=2, failed_in_row=2, failing_s=15.0, error=REFUSED
    )
    look.looks(None)
    assert look.look_state == LookState("", done_s_ago=0.0, failed_looks=2)


def test_a_fault_of_ours_ends_no_thread_and_is_told_with_where_it_is(look: Look) -> None:
    (told,) = look.looks(KeyError("received_at"))
    assert isinstance(told["exc_info"], KeyError)
    assert look.look_state.failed_looks == 1


def test_figures_tell_what_fails(look: Look) -> None:
    registry = CollectorRegistry()
    registry.register(LookMetrics(lambda: {look.name: look.look_state}))

    def figures() -> tuple[float | None, ...]:
        names = ("failed_total", "failing_seconds", "done_age_seconds")
        return tuple(registry.get_sample_value(f"tachograph_looks_{name}", {"look": "judging"}) for name in names)

    assert figures() == (0, 0, 0)
    look.looks(None, *[StoreUnavailableError(REFUSED)] * 3)
    look.now_s += 1
    assert figures() == (3, 21, 31)


def checked(state: LookState) -> Check:
    (check,) = check_looks({"looks": {"judging": state._asdict()}}, ToldErrors())
    return check


def test_the_doctor_says_what_is_not_done_for_how_long_and_why() -> None:
    well = checked(LookState("", done_s_ago=4.2, failed_looks=3))
    assert (well.name, well.verdict, well.finding) == ("judging", Verdict.OK, "last done 4 s ago")
    stumbled = checked(LookState("cells not judged", 14.0, 1, 1, 4.0, REFUSED))
    assert (stumbled.verdict, bool(stumbled.advice)) == (Verdict.WARNING, True)
    failing = checked(LookState("cells not judged", 4_000.0, 360, 360, 3_601.4, REFUSED))
    assert failing.verdict is Verdict.FAULT
    assert failing.finding == f"cells not judged for 3,601 s (360 looks failed): {REFUSED}"
    assert "log" in failing.advice


def test_a_collector_that_tells_of_no_looks_is_not_asked_for_them() -> None:
    assert list(check_looks({}, ToldErrors())) == []

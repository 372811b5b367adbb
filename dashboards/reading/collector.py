"""What a running collector tells of itself, over HTTP: shared by all viewers, and never an exception.

Its counters tell totals; how fast executions come in is told from the totals that were seen while somebody looked.
"""

import json
import os
import ssl
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import pandas as pd
from prometheus_client.parser import text_string_to_metric_families

from dashboards.reading.answers import FRESH_S
from dashboards.reading.shared import shared
from dashboards.reading.store import collector_url
from queries.client import credentials_in
from queries.errors import QueriesError, RefusedError, UnreachableError
from queries.rows import CA_VARIABLE

TIMEOUT_S: Final = 5
SAMPLES_MAX: Final = 1800
"""Totals remembered for the chart: an hour of a page that is looked at."""
REFUSALS: Final = {
    "tachograph_executions_refused": "executions that break the contract",
    "tachograph_requests_turned_away": "requests without room for them",
    "tachograph_otlp_requests": "requests answered by an error",
    "tachograph_requests_not_admitted": "requests and connections not admitted",
    "tachograph_insert_failures": "failed attempts to store",
}
"""Counters of what was refused or failed, each by its reason."""
ANSWERED_WELL: Final = ("200", "OK")


class Sample(NamedTuple):
    """The ledger's totals at an instant, over all doors, in spans."""

    at: datetime
    received: int
    stored: int


@dataclass(frozen=True)
class Collected:
    """What is known of the collector."""

    state: Mapping[str, Any] = field(default_factory=dict)
    """As `/state` has it: `ledger`, `spool`, `disk`, `now_unix_ms`, `version`."""
    troubles: Mapping[str, str] = field(default_factory=dict)
    """Why it does not store, by part; empty while it does."""
    refusals: pd.DataFrame = field(default_factory=lambda: refusals_in(""))
    """What was refused since it started: `what`, `door`, `reason`, `count`."""
    samples: tuple[Sample, ...] = ()
    at: datetime | None = None
    """When it told so, UTC; None where it never did."""
    problem: str = ""

    @property
    def known(self) -> bool:
        """Whether it ever answered."""
        return self.at is not None


class Seen:
    """The last good reading of each collector, and its samples; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: dict[str, Collected] = {}
        self._samples: dict[str, deque[Sample]] = {}

    def keep(self, url: str, collected: Collected, sample: Sample) -> Collected:
        """Remember a reading; the same with all samples."""
        with self._lock:
            samples = self._samples.setdefault(url, deque(maxlen=SAMPLES_MAX))
            samples.append(sample)
            self._last[url] = replace(collected, samples=tuple(samples))
            return self._last[url]

    def recall(self, url: str) -> Collected:
        """The last good reading, or one that knows nothing."""
        with self._lock:
            return self._last.get(url, Collected())


SEEN = Seen()


def collector() -> Collected:
    """What is known of the collector that the settings name."""
    return shared_reading(collector_url())


@shared(FRESH_S, 4)
def shared_reading(url: str) -> Collected:
    """One reading for all viewers. A failure is a reading too."""
    try:
        return read(url)
    except QueriesError as wrong:
        return replace(SEEN.recall(url), problem=str(wrong))


def read(url: str) -> Collected:
    """Ask a collector.

    Raises:
        UnreachableError: none answers there.
        RefusedError: it wants other credentials.
    """
    state = dict(json_of(get(url, "/state"), url))
    ready = json_of(get(url, "/readyz"), url)
    refusals = refusals_in(get(url, "/metrics").decode())
    now = datetime.now(UTC)
    entries = state.get("ledger", {}).values()
    sample = Sample(now, sum(one["received"] for one in entries), sum(one["stored"] for one in entries))
    return SEEN.keep(url, Collected(state, dict(ready.get("reasons", {})), refusals, at=now), sample)


def get(url: str, path: str) -> bytes:
    """One of its pages. `/readyz` answers 503 where it does not store, with its reasons."""
    shown, headers = anonymous(url)
    request = urllib.request.Request(shown + path, headers=headers)  # noqa: S310 -- `anonymous` looks at the scheme
    context = ssl.create_default_context(cafile=os.environ.get(CA_VARIABLE) or None)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:  # noqa: S310
            return bytes(answer.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            if refusal.code == 503 and path == "/readyz":
                return bytes(refusal.read())
            raise refused(shown, refusal.code) from refusal
    except (OSError, ValueError) as wrong:
        why = getattr(wrong, "reason", wrong)
        raise UnreachableError(
            f"no collector answers at {shown} ({why}): name it by TACHOGRAPH_COLLECTOR_URL"
        ) from wrong


def refused(url: str, status: int) -> RefusedError:
    """What a refusal means for who reads it."""
    if status in (401, 403):
        return RefusedError(f"the collector at {url} wants its readers' password: set TACHOGRAPH_SQL_PASSWORD")
    return RefusedError(f"the collector at {url} answers {status}: is it of this version?")


def anonymous(url: str) -> tuple[str, dict[str, str]]:
    """A URL without its password, and the header that bears it.

    Raises:
        UnreachableError: it is no URL of a collector.
    """
    place = urlsplit(url)
    host = place.netloc.rpartition("@")[2]
    if place.scheme not in ("http", "https") or not host:
        raise UnreachableError("TACHOGRAPH_COLLECTOR_URL is no URL of a collector: it looks like http://127.0.0.1:4318")
    return urlunsplit((place.scheme, host, place.path.rstrip("/"), "", "")), credentials_in(url)


def json_of(body: bytes, url: str) -> Mapping[str, Any]:
    """A JSON object.

    Raises:
        UnreachableError: something else answered.
    """
    try:
        read_: Any = json.loads(body)
    except ValueError:
        read_ = None
    if not isinstance(read_, dict):
        raise UnreachableError(f"what answers at {anonymous(url)[0]} is no collector: set TACHOGRAPH_COLLECTOR_URL")
    return read_


def refusals_in(exposition: str) -> pd.DataFrame:
    """What was refused, out of the text of `/metrics`; the most first, nothing that never happened."""
    found = [
        (REFUSALS[family.name], labels.get("door", ""), reason_of(labels), value)
        for family in text_string_to_metric_families(exposition)
        if family.name in REFUSALS
        for labels, value in totals(family.samples)
        if labels.get("status") not in ANSWERED_WELL
    ]
    rows = pd.DataFrame(found, columns=["what", "door", "reason", "count"])
    return rows.sort_values("count", ascending=False, kind="stable").reset_index(drop=True)


def reason_of(labels: Mapping[str, str]) -> str:
    """Why: a counter names its reason, its error or its status."""
    return next((labels[name] for name in ("reason", "error", "status") if name in labels), "")


def totals(samples: Any) -> Iterator[tuple[dict[str, str], int]]:
    """The counts of a counter that are above 0."""
    for sample in samples:
        if sample.name.endswith("_total") and sample.value > 0:
            yield sample.labels, int(sample.value)

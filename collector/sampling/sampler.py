"""A thread that samples a store."""

import threading
from typing import Final

import structlog
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.clickhouse import first_line
from collector.errors import CollectorError
from collector.sampling.rules import SamplingRules
from collector.sampling.sampling import Sampled, Sampling
from collector.store_client import StoreClient

log = structlog.get_logger(__name__)

EVERY_S: Final = 300.0


class Sampler:
    """`start` it once, `stop` it once.

    Args:
        store: A client for it alone.
        rules: What may be dropped.
        cluster: The cluster that the store is on; '' is none.
        every_s: How often, in s.
    """

    def __init__(self, store: StoreClient, rules: SamplingRules, cluster: str = "", every_s: float = EVERY_S) -> None:
        self._store = store
        self._rules = rules
        self._cluster = cluster
        self._every_s = every_s
        self._sampled = Sampled()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampling", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the statement under way."""
        self._stopping.set()
        self._thread.join(timeout=10)

    @property
    def sampled(self) -> Sampled:
        """What was done up to the last look."""
        return self._sampled

    def look(self) -> None:
        """Sample now.

        Raises:
            CollectorError: the store does not answer.
            ClickHouseError: it fails; what was not done is done the next time.
        """
        before = self._sampled
        with self._store.using() as client:
            self._sampled = Sampling(client, self._rules, self._cluster).run()
        dropped = self._sampled.dropped_executions - before.dropped_executions
        if dropped and before.examined_cells:
            log.info("healthy cells are kept as rollups", executions=dropped)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self.look()
            except (CollectorError, ClickHouseError) as error:
                log.warning("cells not sampled", error=first_line(error))

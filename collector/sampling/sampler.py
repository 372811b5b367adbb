"""A thread that samples a store: at once, so that a collector which starts again and again does it all the same."""

from typing import Final

import structlog

from collector.repeated_look import RepeatedLook
from collector.sampling.rules import SamplingRules
from collector.sampling.sampling import Sampled, Sampling
from collector.store.client import StoreClient

log = structlog.get_logger(__name__)

EVERY_S: Final = 300.0
STOP_WITHIN_S: Final = 10.0
"""A statement under way may take so long to end."""


class Sampler(RepeatedLook):
    """See `RepeatedLook`.

    Args:
        store: A client for it alone.
        rules: What may be dropped.
        cluster: The cluster that the store is on; '' is none.
        every_s: How often, in s.
    """

    def __init__(self, store: StoreClient, rules: SamplingRules, cluster: str = "", every_s: float = EVERY_S) -> None:
        super().__init__("sampling", "cells not sampled", every_s, looks_at_once=True, ends_within_s=STOP_WITHIN_S)
        self._store = store
        self._rules = rules
        self._cluster = cluster
        self._sampled: Sampled | None = None

    @property
    def sampled(self) -> Sampled:
        """What was done up to the last look, by processes before this one as well; nothing until the store is asked."""
        return self._sampled or Sampled()

    def see_to_it(self) -> None:
        """Sample now.

        Raises:
            CollectorError: the store does not answer.
            ClickHouseError: it fails; what was not done is done the next time.
        """
        with self._store.using() as client:
            sampling = Sampling(client, self._rules, self._cluster, self._stopping.is_set)
            before = self._sampled = self._sampled or sampling.told()
            self._sampled = after = sampling.run()
        dropped = after.dropped_executions - before.dropped_executions
        if dropped > 0:  # What is older than 180 days is forgotten.
            log.info("healthy cells are kept as rollups", executions=dropped)

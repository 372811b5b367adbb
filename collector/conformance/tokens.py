"""Whether tokens are given out where draft tokens are accepted: judged over a run.

One execution tells nothing: a request that ended while its next round was in flight gives that round's tokens
to nobody.
"""

from typing import Final

from collector.conformance import rules
from collector.conformance.findings import Breach
from engine_hooks.contract.execution import GraphExecution

_EXECUTIONS_MIN: Final = 8
"""Fewer do not tell a wrong count from requests that ended."""


class Tokens:
    """The token counts of one engine instance."""

    def __init__(self) -> None:
        self._judged = self._too_few = 0
        self._example: tuple[str, str] | None = None

    def take(self, execution: GraphExecution, span: str) -> None:
        """Count one execution; `span` is how to find it again."""
        accepted, emitted = execution.batch_tokens_accepted, execution.batch_tokens_emitted
        if not accepted or emitted is None:
            return
        self._judged += 1
        if emitted < accepted:
            self._too_few += 1
            self._example = self._example or (f"{emitted} given out, {accepted} accepted", span)

    def breaches(self) -> list[tuple[Breach, str, int]]:
        """Given out less than was accepted, in most executions: the breach, an example's span, and how often."""
        if self._example is None or self._judged < _EXECUTIONS_MIN or self._too_few * 2 <= self._judged:
            return []
        value, span = self._example
        return [(Breach(rules.TOKENS_EMITTED, "", value), span, self._too_few)]

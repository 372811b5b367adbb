"""The batch as the device holds it: which token each lane is at, so that rounds need no word from the host."""

from collections import deque
from typing import Final, NamedTuple

import torch
from torch import Tensor

from engine_hooks.scheduler.graphs import DRAFTS_PER_LANE_MAX
from engine_hooks.torch_demo.model import KeyValueCache, TinyTransformer, draft_heads

OUTCOMES_MAX: Final = 8
"""Rounds whose results may lie on the host, not yet taken in. Two are in flight at most."""


class Outcome(NamedTuple):
    """What a round gave, on the host."""

    tokens: list[list[int]]
    """By lane: what the model says after each verified position; the first `accepted + 1` of them count."""
    accepted: list[int]
    """By lane: drafts accepted."""


class Lanes:
    """Sequences that decode together, with their cache, on the device.

    Sampling is by the Gumbel trick with noise that belongs to a request's position, not to a
    round: whichever graph decodes a position gives the same token. A draft is accepted if it
    is the token that was sampled, which happens with the model's own probability of it; else
    the sampled token stands, which is then distributed as the model's own without the draft.
    That is rejection sampling for drafts that are certain; its output is plain decode's.
    """

    def __init__(self, model: TinyTransformer, lanes: int, temperature: float) -> None:
        """`temperature` 0 is greedy."""
        self.model = model
        self.count = lanes
        self.temperature = temperature
        self.cache = KeyValueCache(model.shape, lanes, model.dtype)
        self.heads = draft_heads(model, DRAFTS_PER_LANE_MAX)
        self.outcomes: deque[Outcome] = deque(maxlen=OUTCOMES_MAX)
        """Results in the order of the rounds, as a copy to the host would leave them."""
        self._last = torch.zeros(lanes, dtype=torch.long)
        self._position = torch.zeros(lanes, dtype=torch.long)
        self._numbers = torch.arange(lanes)
        self._noise = torch.zeros(lanes, model.shape.positions, model.shape.vocabulary, dtype=model.dtype)
        # A lane that is done, and whose end the host has not seen yet, stays within the cache.
        self._position_max = model.shape.positions - DRAFTS_PER_LANE_MAX - 1

    @torch.inference_mode()
    def prefill(self, lane: int, prompt: Tensor, seed: int) -> None:
        """Begin a sequence in a lane: (n,) tokens of a prompt, and the seed of its noise."""
        count = len(prompt)
        logits = self.model.logits(prompt[None], torch.arange(count)[None], self.cache.lane(lane))[0, -1]
        if self.temperature:
            self._noise[lane] = gumbel_noise(self._noise[lane], seed)
        first = self._sampled(logits, self._noise[lane, count - 1])
        self._last[lane] = first
        self._position[lane] = count
        self.outcomes.append(Outcome([[int(first)]], [0]))

    @torch.inference_mode()
    def decode(self, drafts: int) -> None:
        """One round of every lane: plain with no drafts, else so many of each lane are verified."""
        last, numbers = self._last, self._numbers
        drafted = self.heads[last, :drafts]
        positions = self._position[:, None] + torch.arange(drafts + 1)
        logits = self.model.logits(torch.cat([last[:, None], drafted], 1), positions, self.cache)
        sampled = self._sampled(logits, self._noise[numbers[:, None], positions])
        accepted = (drafted == sampled[:, :-1]).long().cumprod(1).sum(1)
        self._last = sampled[numbers, accepted]
        self._position = (self._position + accepted + 1).clamp(max=self._position_max)
        self.outcomes.append(Outcome(sampled.tolist(), accepted.tolist()))

    def _sampled(self, logits: Tensor, noise: Tensor) -> Tensor:
        return (logits / self.temperature + noise if self.temperature else logits).argmax(-1)


def gumbel_noise(like: Tensor, seed: int) -> Tensor:
    """Standard Gumbel noise of the same size and type, from a seed."""
    generator = torch.Generator().manual_seed(seed)
    return -torch.empty_like(like).exponential_(generator=generator).log()

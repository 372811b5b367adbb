"""Requests: an endless supply of prompts, and what was generated for each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor

PROMPT_TOKENS: Final = 16


@dataclass
class Request:
    """One sequence being decoded."""

    seed: int
    """Of its prompt and of the noise it is sampled with."""
    prompt: Tensor
    """(n,) token ids."""
    tokens_max: int
    tokens: list[int] = field(default_factory=list)
    """Generated so far, as the host knows."""

    @property
    def finished(self) -> bool:
        return len(self.tokens) >= self.tokens_max

    def take(self, tokens: list[int]) -> int:
        """Take in what a round generated; how many of them still belong to this request."""
        kept = tokens[: self.tokens_max - len(self.tokens)]
        self.tokens += kept
        return len(kept)


def requests(seed: int, vocabulary: int, tokens_max: int) -> Iterator[Request]:
    """Requests without end; the same seed gives the same ones."""
    generator = torch.Generator().manual_seed(seed)
    number = seed << 32
    while True:
        prompt = torch.randint(vocabulary, (PROMPT_TOKENS,), generator=generator)
        yield Request(number, prompt, tokens_max)
        number += 1

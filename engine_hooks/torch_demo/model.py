"""A small decoder-only transformer with random weights whose next token is half foreseeable."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear, rms_norm, scaled_dot_product_attention


@dataclass(frozen=True)
class ModelShape:
    """Sizes of the model. Its weights are read once a round, whatever the number of tokens, as on a GPU."""

    vocabulary: int = 256
    width: int = 256
    layers: int = 2
    heads: int = 4
    positions: int = 512
    """Tokens of a sequence, prompt included, that the cache holds."""
    context_weight: float = 0.64
    """How much the layers add to a token's own embedding: the more, the less a draft head foresees."""

    @property
    def head_width(self) -> int:
        return self.width // self.heads


class KeyValueCache:
    """Keys and values of every layer, lane, head and position; a lane's stale ones lie beyond its position."""

    def __init__(self, shape: ModelShape, lanes: int, dtype: torch.dtype) -> None:
        sizes = (shape.layers, lanes, shape.heads, shape.positions, shape.head_width)
        self.keys = torch.zeros(sizes, dtype=dtype)
        self.values = torch.zeros(sizes, dtype=dtype)

    def lane(self, lane: int) -> "KeyValueCache":
        """The same cache, of one lane alone."""
        view = object.__new__(KeyValueCache)
        view.keys = self.keys[:, lane : lane + 1]
        view.values = self.values[:, lane : lane + 1]
        return view


class TinyTransformer:
    """Embedding, layers of attention and feed-forward with residuals, and a head.

    The weights are random, from a seed. The head's row of each token is the embedding of
    the token before it in a fixed random order, so that a token foretells its successor as
    far as the layers do not add something else: acceptance of drafts is neither 0 nor 1.
    """

    def __init__(self, shape: ModelShape, seed: int, dtype: torch.dtype = torch.float32) -> None:
        generator = torch.Generator().manual_seed(seed)

        def random(rows: int, columns: int) -> Tensor:
            return torch.randn(rows, columns, generator=generator, dtype=torch.float64).to(dtype)

        self.shape = shape
        self.dtype = dtype
        width = shape.width
        self.embedding = random(shape.vocabulary, width)
        successor = torch.randperm(shape.vocabulary, generator=generator)
        self.head = torch.empty_like(self.embedding)
        self.head[successor] = self.embedding / math.sqrt(width)
        self._positions = 0.2 * random(shape.positions, width)
        scale = 1 / math.sqrt(width)
        self._layers = [
            (
                scale * random(3 * width, width),
                shape.context_weight * scale * random(width, width),
                scale * random(4 * width, width),
                shape.context_weight * scale * random(width, 4 * width),
            )
            for _ in range(shape.layers)
        ]
        self._all_positions = torch.arange(shape.positions)

    def logits(self, tokens: Tensor, positions: Tensor, cache: KeyValueCache) -> Tensor:
        """Logits of the next token after each of `tokens`; their keys and values go into the cache.

        Args:
            tokens: (lanes, n) token ids.
            positions: (lanes, n), where in its sequence each of them stands.
            cache: Of these lanes.

        Returns: (lanes, n, vocabulary).
        """
        lanes, count = tokens.shape
        shape, width = self.shape, (self.shape.width,)
        lane = torch.arange(lanes)[:, None]
        visible = (self._all_positions[: cache.keys.shape[3]] <= positions[:, :, None])[:, None]
        x = self.embedding[tokens] + self._positions[positions]
        for number, (project_in, project_out, widen, narrow) in enumerate(self._layers):
            split = linear(rms_norm(x, width), project_in).view(lanes, count, 3, shape.heads, shape.head_width)
            query, key, value = split.unbind(2)
            keys, values = cache.keys[number], cache.values[number]
            keys[lane, :, positions] = key
            values[lane, :, positions] = value
            attended = scaled_dot_product_attention(query.transpose(1, 2), keys, values, attn_mask=visible)
            x = x + linear(attended.transpose(1, 2).reshape(lanes, count, shape.width), project_out)
            x = x + linear(gelu(linear(rms_norm(x, width), widen)), narrow)
        return linear(rms_norm(x, width), self.head)


def draft_heads(model: TinyTransformer, drafts_max: int) -> Tensor:
    """What each draft head foretells after each token: (vocabulary, drafts_max).

    Distilled from the model: what it likes best after each token when it sees nothing else,
    and what it would like best after that, and so on.
    """
    tokens = torch.arange(model.shape.vocabulary)
    alone = KeyValueCache(replace(model.shape, positions=1), len(tokens), model.dtype)
    following = model.logits(tokens[:, None], torch.zeros_like(tokens)[:, None], alone)[:, 0].argmax(-1)
    heads = []
    for _ in range(drafts_max):
        tokens = following[tokens]
        heads.append(tokens)
    return torch.stack(heads, 1)

"""A Llama of 3 M random parameters with a byte-level BPE tokenizer, made on the spot: nothing is downloaded.

Run by vLLM's own interpreter: `python tiny_model.py DIRECTORY`.
"""

import sys
from pathlib import Path

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXT = (
    "The engine keeps two submissions in flight. Each round its scheduler picks a graph: plain decode, or a "
    "speculative round that verifies drafts. Costs are learnt online, and one late host is enough to spoil one. "
    '{"name": "decode", "lanes": 16, "drafted": 112, "accepted": 70} one two three four five six seven eight nine. '
)
VOCABULARY = 512
ROLES = ["bos_token", "eos_token", "pad_token"]
SPECIAL = ["<s>", "</s>", "<pad>"]


def make(directory: Path) -> None:
    """Write configuration, weights and tokenizer."""
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([TEXT] * 20, vocab_size=VOCABULARY, special_tokens=SPECIAL)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, **dict(zip(ROLES, SPECIAL, strict=True)))
    tokenizer.save_pretrained(directory)
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        bos_token_id=0,
        eos_token_id=1,
        torch_dtype="float32",
    )
    model = LlamaForCausalLM(config)
    model.save_pretrained(directory)


if __name__ == "__main__":
    make(Path(sys.argv[1]))

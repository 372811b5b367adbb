"""A statement of `collector/schema` as words, so that what stands in strings and comments is never taken for SQL.

ClickHouse has a parser, but none that writes a changed tree; sqlglot's (30.30) does not read two of our views
(decision 0022). What is changed here is a handful of words at known places, and the engine judges the outcome.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Self

_TOKEN: Final = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|`[^`]*`|\w+|\s+|.", re.DOTALL)
_NO_WORD: Final = re.compile(r"\s|--|/\*")
_OPENING: Final = ("(",)
_CLOSING: Final = (")",)


class Word(NamedTuple):
    """One word, or one mark of punctuation."""

    text: str
    place: int
    """Among all tokens, those between words counted."""
    depth: int
    """How many parentheses are open around it."""

    def says(self, *keywords: str) -> bool:
        """Whether it is one of these, however it is written."""
        return self.text.upper() in keywords


class Statement:
    """One SQL statement: its words, and the same with some of them replaced."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self.words = list(self._read())

    @classmethod
    def of(cls, text: str) -> Self:
        """The statement without a closing semicolon."""
        return cls(text.strip().removesuffix(";").rstrip())

    def __str__(self) -> str:
        return "".join(self._tokens)

    def replaced(self, changes: Mapping[int, str]) -> str:
        """The text with other tokens at these places."""
        return "".join(changes.get(place, token) for place, token in enumerate(self._tokens))

    def begins(self, *keywords: str) -> bool:
        """Whether its first words are these."""
        return [word.text.upper() for word in self.words[: len(keywords)]] == list(keywords)

    def after(self, *keywords: str, depth: int = 0) -> Word | None:
        """The word that follows these where they stand first, within so many parentheses."""
        at = self.find(*keywords, depth=depth)
        return self.words[at + len(keywords)] if at is not None and at + len(keywords) < len(self.words) else None

    def find(self, *keywords: str, depth: int = 0, start: int = 0) -> int | None:
        """Where among its words these stand first, within so many parentheses."""
        for at in range(start, len(self.words) - len(keywords) + 1):
            found = self.words[at : at + len(keywords)]
            if found[0].depth == depth and all(
                word.says(keyword) for word, keyword in zip(found, keywords, strict=True)
            ):
                return at
        return None

    def _read(self) -> Iterator[Word]:
        depth = 0
        for place, token in enumerate(self._tokens):
            if _NO_WORD.match(token):
                continue
            depth -= token in _CLOSING
            yield Word(token, place, depth)
            depth += token in _OPENING

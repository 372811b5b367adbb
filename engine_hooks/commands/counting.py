"""A count with its noun, as commands say it."""


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`, `1,234 rows`; the noun is in the singular, and takes an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"

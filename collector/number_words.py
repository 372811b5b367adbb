"""A number with its noun, as people write it."""


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`, `1,234 rows`.

    Args:
        number: How many.
        noun: In the singular, of those that take an s.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

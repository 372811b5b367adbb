"""The root of every error this package raises on purpose.

    CollectorError
    ├── StoreError            the store cannot be opened or reached (collector.store.clickhouse)
    ├── SchemaError           the store's schema cannot be brought up to date (collector.store.migrations)
    └── (receivers and others derive their own)

The text of each is one clear line: what, where, what to do.
"""

from typing import ClassVar


class CollectorError(Exception):
    """A fault the user can do something about, in one line."""

    exit_code: ClassVar[int] = 1
    """What the command line exits with."""

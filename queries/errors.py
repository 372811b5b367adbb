"""What can go wrong with a query, each said in one line.

QueriesError               1  root
├── HeadError              1  a .sql file whose head cannot be read: file and line
├── CallError              2  a wrong call
│   ├── UnknownQueryError  2
│   ├── ParameterError     2
│   ├── UnknownCellError   2
│   ├── NotSimulatedError  2
│   └── AmbiguousCellError 2
├── OtherStoreError        2  the collector that is named stores in another store than the one that is read
├── UnreachableError       3  no ClickHouse answers at the URL
└── RefusedError           4  ClickHouse answered with an error: its code and name are kept

The figure is the exit code of `tachograph query`.
"""

from typing import ClassVar


class QueriesError(Exception):
    """Root of this package's errors; its text is one line for the user."""

    exit_code: ClassVar[int] = 1


class HeadError(QueriesError):
    """The head of a `.sql` file breaks the format of `queries.catalogue`."""


class CallError(QueriesError):
    """The call cannot be carried out as it was written."""

    exit_code = 2


class UnknownQueryError(CallError):
    """No query bears that name."""


class ParameterError(CallError):
    """A parameter is unknown, or its value does not fit its type."""


class UnknownCellError(CallError):
    """Nothing is stored of that cell."""


class NotSimulatedError(CallError):
    """A recorded cell cannot be simulated; the exact form of a replay may be answered all the same."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}: it cannot be simulated; --form exact needs none")
        self.why = why
        """What the record lacks."""


class AmbiguousCellError(CallError):
    """Several engines have a cell of that name."""


class OtherStoreError(QueriesError):
    """The settings name a store, and a collector that stores in another one. The rows are as good as any: they may be sent again."""

    exit_code = 2


class UnreachableError(QueriesError):
    """No ClickHouse answers at the URL."""

    exit_code = 3


class RefusedError(QueriesError):
    """ClickHouse refused or failed the query."""

    exit_code = 4

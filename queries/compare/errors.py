"""What can end a comparison, besides what can go wrong with any query (`queries.errors`).

NothingToCompareError      5  no two cells make a pair
FailOnError                6  a verdict that `--fail-on` names
"""

from queries.errors import QueriesError


class NothingToCompareError(QueriesError):
    """No two cells of the arms make a pair."""

    exit_code = 5


class FailOnError(QueriesError):
    """A row has a verdict that the caller takes as a failure."""

    exit_code = 6

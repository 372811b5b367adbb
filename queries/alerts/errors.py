"""What can go wrong with alerts, each said in one line.

QueriesError
├── RuleError            2  a rule that is refused: file, line and reason
├── UnknownRuleError     2  no rule bears that name
├── AlertStateError      1  what alerts were last known to be cannot be read or kept
│   ├── NotEvaluatedError 1  nobody has evaluated there: where alerts stand is unknown
│   └── UnwritableError   2  the data directory cannot be made or written, whatever room there is
└── NotDeliveredError    3  a receiver did not take alerts (queries.alerts.notifying)
"""

from queries.errors import CallError, QueriesError


class RuleError(CallError):
    """A rule is refused; its text begins with `file:line: `."""


class UnknownRuleError(CallError):
    """No rule bears that name."""


class AlertStateError(QueriesError):
    """The file of alerts' states cannot be read, written, or belongs to another evaluator."""


class NotEvaluatedError(AlertStateError):
    """No evaluator has looked at any rule on that data directory."""


class UnwritableError(AlertStateError):
    """The data directory cannot be made or written: a wrong setting, as it is to every command."""

    exit_code = 2

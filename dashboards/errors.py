"""What can go wrong with the dashboards, each said in one line.

DashboardsError          1  root
├── DashboardAccessError 2  nobody would be asked who they are, or a setting of access cannot be used
└── PortTakenError       2  something else listens on the dashboards' port

The figure is the exit code of `tachograph dashboard`. A store that cannot be reached is no error
here: the pages say so, and show what they last knew (`dashboards.reading.answers`).
"""

from typing import ClassVar


class DashboardsError(Exception):
    """Root of this package's errors; its text is one line for the user."""

    exit_code: ClassVar[int] = 1


class PortTakenError(DashboardsError):
    """Something else listens on the dashboards' port."""

    exit_code = 2


class DashboardAccessError(DashboardsError):
    """Everybody would be let in from other machines, or a password or log-in cannot be used. Never shows a secret."""

    exit_code = 2

"""What can be wrong with an import. Each error's text is one line: which file, where, what to do.

EngineHooksError
└── TraceImportError
    ├── TraceUnreadableError   the file cannot be opened, is cut off, is damaged, or is no profile
    ├── TraceMalformedError    something that matters lacks a time or has an impossible one
    ├── NothingToImportError   a whole profile without one graph launch
    └── WrongShiftError        `--shift-to` names no time
"""

from engine_hooks.errors import EngineHooksError


class TraceImportError(EngineHooksError):
    """No profile was imported, or not all of it; the text says which."""


class TraceUnreadableError(TraceImportError):
    """The file cannot be opened, is cut off, is damaged, or is no profile."""


class TraceMalformedError(TraceImportError):
    """Something that matters lacks a time or has an impossible one."""


class NothingToImportError(TraceImportError):
    """A whole profile without one graph launch whose device operations are in it."""


class WrongShiftError(TraceImportError):
    """`--shift-to` names no time, or one that the profile cannot be moved to."""

    exit_code = 2

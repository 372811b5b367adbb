"""Settings that no command knows: a misspelt name would be without effect, and without a word."""

import difflib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from dotenv.parser import Binding, parse_stream

PREFIX: Final = "TACHOGRAPH_"
ELSEWHERE: Final = frozenset(
    {"TACHOGRAPH_HOOKS", "TACHOGRAPH_INGEST_TOKEN", "TACHOGRAPH_PASSWORD_SHA256", "TACHOGRAPH_SETTINGS_SAID"}
)
"""Names that no command has as a setting, and something reads: the hooks in an engine, senders of computed rows,
docs/deploy's ClickHouse, and the parts of `tachograph up`."""
TESTS: Final = "TACHOGRAPH_TEST_"
SAID: Final = "TACHOGRAPH_SETTINGS_SAID"
"""Set for processes whose parent has warned already."""


class Line(NamedTuple):
    """A statement of an environment file, with the line that it stands on, from 1."""

    number: int
    binding: Binding


def warnings_of(environment: Mapping[str, str], file: Path, settings: Collection[str]) -> Iterator[str]:
    """One line for each name that begins as a setting and is none, and for each line of the file that sets nothing.

    No value is in them: it may be a secret.

    Args:
        environment: Of this process. Nothing is said where `SAID` is in it.
        file: `.env`; it need not be there.
        settings: Names of the settings, as fields: `data_dir`.
    """
    if SAID in environment:
        return
    known = {f"{PREFIX}{name.upper()}" for name in settings}
    lines = list(lines_of(file))
    for number, binding in lines:
        if binding.error or binding.value is None:
            yield f"{file}, line {number}: no NAME=VALUE, and no comment; it sets nothing"
    places = dict.fromkeys(environment, "")
    places |= {one.binding.key: f"{file}, line {one.number}: " for one in lines if one.binding.key is not None}
    for name, place in sorted(places.items()):
        if is_unknown(name, known):
            yield f"{place}{name} is no setting, and has no effect{hint(name, known)}"


def lines_of(file: Path) -> Iterator[Line]:
    """Every line that is more than a comment; none where there is no such file."""
    if not file.is_file():
        return
    with file.open(encoding="utf-8") as stream:
        for binding in parse_stream(stream):
            text = binding.original.string
            before = text[: len(text) - len(text.lstrip())].count("\n")
            if binding.error or binding.key is not None:
                yield Line(binding.original.line + before, binding)


def is_unknown(name: str, known: Collection[str]) -> bool:
    """Whether it looks like a setting, and nobody reads it; settings are read in either case."""
    name = name.upper()
    return name.startswith(PREFIX) and not name.startswith(TESTS) and name not in known and name not in ELSEWHERE


def hint(name: str, known: Collection[str]) -> str:
    """The nearest name, where one is near."""
    near = difflib.get_close_matches(
        name.upper().removeprefix(PREFIX), [one.removeprefix(PREFIX) for one in known], n=1
    )
    return f": did you mean {PREFIX}{near[0]}?" if near else ""

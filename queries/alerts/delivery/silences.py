"""Silences: for a while, alerts with these labels reach nobody. They end by themselves.

Matchers are Alertmanager's: `name=value`, `name!=value`, `name=~regex`, `name!~regex`, regular expressions anchored at
both ends; a missing label is the empty value.
"""

import difflib
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from queries.alerts.delivery import kept
from queries.errors import CallError

KEPT_FOR: Final = timedelta(days=5)
"""How long one that ended is still listed; as Alertmanager's default."""
SILENCES_MAX: Final = 1000
DURATION_MAX: Final = timedelta(days=3650)
"""The longest that one lasts."""
_MATCHER: Final = re.compile(r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*(?P<sign>=~|!~|!=|=)(?P<value>.*)", re.DOTALL)
_DURATION: Final = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class Matcher(BaseModel):
    """One condition on a label; its JSON is Alertmanager's."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil it."""
        value = labels.get(self.name, "")
        same = re.fullmatch(self.value, value) is not None if self.is_regex else value == self.value
        return same == self.is_equal

    def __str__(self) -> str:
        sign = {(False, True): "=", (False, False): "!=", (True, True): "=~", (True, False): "!~"}
        return f"{self.name}{sign[self.is_regex, self.is_equal]}{self.value}"


class Silence(BaseModel):
    """One silence; its JSON is Alertmanager's."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    id: str = ""
    matchers: list[Matcher] = Field(min_length=1)
    starts_at: datetime
    ends_at: datetime
    created_by: str
    comment: str

    def mutes(self, labels: Mapping[str, str]) -> bool:
        """Whether an alert with these labels is one of those that it is for."""
        return all(matcher.matches(labels) for matcher in self.matchers)

    def state(self, now: datetime) -> str:
        """`active`, or `pending` before and `expired` after."""
        if now >= self.ends_at:
            return "expired"
        return "active" if now >= self.starts_at else "pending"

    def posted(self) -> dict[str, Any]:
        """As Alertmanager takes a new one."""
        return self.model_dump(mode="json", by_alias=True, exclude={"id"})


def matcher_of(text: str) -> Matcher:
    """A matcher as it is typed; its value may stand in double quotes.

    Raises:
        CallError: it is none.
    """
    found = _MATCHER.fullmatch(text)
    if not found:
        raise CallError(f"{text!r} is no matcher: they look like alertname=StuckInPlain or host_name=~'gpu-1.*'")
    value = found["value"].strip()
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    is_regex = found["sign"].endswith("~")
    try:
        re.compile(value if is_regex else "")
    except re.error as wrong:
        raise CallError(f"{text!r} is no matcher: {value!r} is no regular expression ({wrong})") from wrong
    return Matcher(name=found["name"], value=value, is_regex=is_regex, is_equal=not found["sign"].startswith("!"))


def duration_of(text: str) -> timedelta:
    """A duration as Prometheus writes it: `90m`, `2h30m`, `1d`, `2w`.

    Raises:
        CallError: it is none, none above 0, or above `DURATION_MAX`.
    """
    found = _DURATION.fullmatch(text.strip())
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else [0] * 5
    try:
        duration = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        duration = timedelta.max
    if not duration:
        raise CallError(f"{text!r} is no duration: they look like 90m, 2h30m, 1d or 2w")
    if duration > DURATION_MAX:
        raise CallError(f"{text!r} is too long: a silence lasts {DURATION_MAX.days}d at most")
    return duration


def new_silence(
    matchers: Sequence[str], duration: str, comment: str, author: str, now: datetime | None = None
) -> Silence:
    """A silence from now on.

    Raises:
        CallError: a matcher or the duration is none, or the matchers would silence whatever has none of the labels.
    """
    now = now or datetime.now(UTC)
    parsed = [matcher_of(text) for text in matchers]
    if all(matcher.matches({}) for matcher in parsed):
        raise CallError("these matchers fit an alert without any label: name at least one label's value")
    return Silence(
        matchers=parsed, starts_at=now, ends_at=now + duration_of(duration), created_by=author, comment=comment
    )


def check_alertnames(silence: Silence, names: Sequence[str]) -> None:
    """Let a silence name only rules that there are: a typing mistake would silence nothing, or everything else.

    Raises:
        CallError: no rule has the name, or matches the expression; names the nearest.
    """
    for matcher in silence.matchers:
        positive = matcher.model_copy(update={"is_equal": True})
        if matcher.name == "alertname" and not any(positive.matches({"alertname": name}) for name in names):
            near = difflib.get_close_matches(matcher.value, names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise CallError(f"no rule is called {matcher.value!r} ({matcher}): {hint}")


class OwnSilences:
    """Silences of our own, for receivers behind which no Alertmanager stands: one file each.

    Several processes may use one directory: each change replaces one file as a whole.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def create(self, silence: Silence, now: datetime) -> str:
        """Keep it; its id.

        Raises:
            NotKeptError: the directory cannot be written.
            CallError: there are `SILENCES_MAX`.
        """
        self._forget(now)
        if len(self.all()) >= SILENCES_MAX:
            raise CallError(f"there are {SILENCES_MAX} silences: expire some, or use wider matchers")
        made = silence.model_copy(update={"id": str(uuid.uuid4())})
        kept.write(self._directory / f"{made.id}.json", made)
        return made.id

    def all(self) -> list[Silence]:
        """Those that are kept, by their end. What was damaged silences nothing."""
        found = [kept.read(file, Silence) for file in self._directory.glob("*.json")]
        return sorted((silence for silence in found if silence), key=lambda silence: (silence.ends_at, silence.id))

    def active(self, now: datetime) -> list[Silence]:
        """Those in force."""
        return [silence for silence in self.all() if silence.state(now) == "active"]

    def expire(self, silence_id: str, now: datetime) -> bool:
        """End one now; False where none that still runs has this id."""
        for silence in self.all():
            if silence.id == silence_id and silence.state(now) != "expired":
                ended = silence.model_copy(update={"starts_at": min(silence.starts_at, now), "ends_at": now})
                kept.write(self._directory / f"{silence.id}.json", ended)
                return True
        return False

    def _forget(self, now: datetime) -> None:
        for silence in self.all():
            if now - silence.ends_at > KEPT_FOR:
                (self._directory / f"{silence.id}.json").unlink(missing_ok=True)

"""Streams the events of a trace file, one at a time: no part of the file is held but the event at hand."""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import ijson

from engine_hooks.adapters.profiles.errors import TraceUnreadableError

CHUNK_BYTES: Final = 65_536
GZIP_MAGIC: Final = b"\x1f\x8b"
EVENTS_KEY: Final = "traceEvents"
HEADER_PREFIXES: Final = frozenset(
    {
        "baseTimeNanoseconds",
        "traceName",
        "trace_id",
        "deviceProperties.item.id",
        "deviceProperties.item.name",
        "distributedInfo.backend",
        "distributedInfo.rank",
        "distributedInfo.world_size",
    }
)
HEADER_VALUES_MAX: Final = 4_096
"""Values kept of the header: an eight-GPU host has about thirty."""
OPENING: Final = frozenset({"start_map", "start_array"})
CLOSING: Final = frozenset({"end_map", "end_array"})
DEPTH_MAX: Final = 64
"""Levels of arrays and objects; real traces have about six."""


class TraceReader:
    """The events of one file, in the file's order. Iterate once; the header and the digest are whole afterwards.

    Gzip is known by its magic bytes, not by the name. The events stand under `traceEvents`
    or are the file's only array; the header may stand before or behind them.

    Raises:
        TraceUnreadableError: while iterating; names the file, the events read and the byte of the (uncompressed) text.
    """

    def __init__(self, path: Path, on_progress: Callable[[int], None] = lambda _: None) -> None:
        """`on_progress` is told how many bytes of the file have been read."""
        self.path = path
        self.event_count = 0
        self.header: dict[str, list[Any]] = {}
        self._on_progress = on_progress
        self._digest = hashlib.sha256()
        self._text_bytes = 0
        self._events_seen = False

    @property
    def content_digest(self) -> str:
        """SHA-256 of the uncompressed text, in hex: the same however the file is named or packed."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[Any]:
        chunks = self._chunks()
        first = next(chunks, b"")
        if not first.strip():
            raise TraceUnreadableError(f"{self.path} is empty")
        bare_array = first.lstrip().startswith(b"[")
        self._events_seen = bare_array
        found = ijson.sendable_list()
        events = ijson.items_coro(found, "item" if bare_array else f"{EVENTS_KEY}.item")
        watch = self._watch()
        next(watch)
        # First in the row: it stops bottomless nesting, of which the other remembers every level.
        parsers = (ijson.parse_coro(watch), events)
        next_chunk: bytes | None = first
        while next_chunk is not None:
            yield from self._parsed(next_chunk, parsers, found)
            next_chunk = next(chunks, None)
        yield from self._parsed(b"", parsers, found)
        if not self._events_seen:
            raise TraceUnreadableError(f"{self.path} has no {EVENTS_KEY}: it is not a PyTorch profiler (Kineto) trace")

    def _parsed(self, chunk: bytes, parsers: Iterable[Any], found: list[Any]) -> Iterator[Any]:
        """The events that end within this chunk; an empty one ends the text."""
        self._text_bytes += len(chunk)
        fault = None
        for parser in parsers:
            try:
                parser.send(chunk) if chunk else parser.close()
            except (ijson.JSONError, ValueError) as error:  # The others still take what comes before it.
                fault = error
        self.event_count += len(found)
        if fault:
            raise self._not_json(fault)
        yield from found
        found.clear()

    def _not_json(self, fault: Exception) -> TraceUnreadableError:
        said = fault.args[0] if fault.args else type(fault).__name__
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        reason = text.partition("\n")[0]
        cut_off = isinstance(fault, ijson.IncompleteJSONError) and ("premature" in reason or "ncomplete" in reason)
        what = "is cut off" if cut_off else f"is not JSON ({reason})"
        return TraceUnreadableError(f"{self.path} {what} {self._place()}; nothing was imported")

    def _place(self) -> str:
        return f"after {self.event_count:,} whole events, at or before byte {self._text_bytes:,} of its text"

    def _watch(self) -> Generator[None, tuple[str, str, Any], None]:
        """Measures the depth, and keeps the few values of the header that an execution's resource is made of.

        It is sent every token of the file: what is not inlined here is what the reading of a large file costs.
        """
        depth = 0
        while True:
            prefix, kind, value = yield
            if kind in OPENING:
                depth += 1
                if depth > DEPTH_MAX:
                    raise TraceUnreadableError(
                        f"{self.path} is nested more than {DEPTH_MAX} deep {self._place()}: it is not a PyTorch "
                        "profiler (Kineto) trace; nothing was imported"
                    )
            elif kind in CLOSING:
                depth -= 1
            elif not prefix.startswith(EVENTS_KEY):
                self._keep(prefix, kind, value)

    def _keep(self, prefix: str, kind: str, value: Any) -> None:
        if prefix in HEADER_PREFIXES:
            values = self.header.setdefault(prefix, [])
            if len(values) < HEADER_VALUES_MAX:
                values.append(value)
        elif kind == "map_key" and not prefix and value == EVENTS_KEY:
            self._events_seen = True

    def _chunks(self) -> Iterator[bytes]:
        """The uncompressed text; told apart by magic bytes."""
        try:
            with self.path.open("rb") as raw:
                packed = raw.read(2) == GZIP_MAGIC
                raw.seek(0)
                text: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
                while chunk := text.read(CHUNK_BYTES):
                    self._digest.update(chunk)
                    self._on_progress(raw.tell())
                    yield chunk
        except EOFError as error:
            raise TraceUnreadableError(f"{self.path} is cut off {self._place()}; nothing was imported") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TraceUnreadableError(
                f"{self.path} is not whole gzip ({error}) {self._place()}; nothing was imported"
            ) from error
        except OSError as error:
            raise TraceUnreadableError(f"{self.path} cannot be read: {error.strerror or error}") from error

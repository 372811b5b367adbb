"""`tachograph top` on a terminal: keys, the clock, and asking; what is drawn is decided in `queries.top.frame`."""

import asyncio
import contextlib
import os
import signal
from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input, Static

from queries.client import shown
from queries.errors import QueriesError
from queries.top.asking import Asking
from queries.top.fleet import Engine, Sort, arranged
from queries.top.frame import Size, View, columns_for, frame, selected_cell, selected_engine
from queries.top.seen import Seen, look, range_for

ASK_EVERY_S: Final = 2.0
REDRAW_EVERY_S: Final = 1.0
"""The age of what is shown goes on while nothing is answered."""
KEYS: Final = "q quit  ↑↓ jk engine  ←→ hl cell  enter what happened  s sort  / host"
STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Wanted(NamedTuple):
    """A cell whose headline is asked for."""

    service_instance_id: str
    cell: str


class Answered(Message):
    """What is known of the fleet now."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.seen = seen


class Told(Message):
    """A headline."""

    def __init__(self, wanted: Wanted, headline: str) -> None:
        super().__init__()
        self.wanted = wanted
        self.headline = headline


def headline_of(url: str, wanted: Wanted) -> str:
    """What happened in a cell, in a line; why that cannot be told, where it cannot."""
    # Told as post-mortems tell it; scipy is loaded when somebody asks.
    from queries.postmortem.told import told  # noqa: PLC0415

    try:
        return told(url, wanted.cell, wanted.service_instance_id).story.headline
    except QueriesError as wrong:
        return str(wrong)


class Top(App[None]):
    """The fleet, live.

    Args:
        url: ClickHouse.
        view: What to begin with.
    """

    CSS: ClassVar[str] = """
    Screen { background: ansi_default; color: ansi_default; overflow: hidden; }
    #frame { width: 100%; height: 1fr; background: ansi_default; color: ansi_default; }
    #keys { width: 100%; height: 1; background: ansi_default; color: ansi_default; text-style: dim; }
    #host { width: 100%; height: 1; border: none; padding: 0; display: none; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit"),
        Binding("ctrl+c", "quit", priority=True),
        Binding("ctrl+q", "quit", priority=True),
        Binding("ctrl+z", "suspend_process"),
        Binding("up,k", "engine(-1)"),
        Binding("down,j", "engine(1)"),
        Binding("left,h", "cell(-1)"),
        Binding("right,l", "cell(1)"),
        Binding("enter", "tell"),
        Binding("s", "sort"),
        # Before anything else, or keys that follow at once (a paste, a slow line) would miss the box.
        Binding("slash", "look_for_host", priority=True),
        Binding("escape", "every_host", priority=True),
    ]

    def __init__(self, url: str, view: View) -> None:
        super().__init__(ansi_color=True)
        self._url = url
        self._view = replace(view, place=shown(url))
        self._seen = Seen()
        self._looking: Asking[int, Seen] = Asking(
            "top-fleet", lambda last_s: look(url, last_s, self._seen), lambda _, seen: self._post(Answered(seen))
        )
        self._telling: Asking[Wanted, str] = Asking(
            "top-headline",
            lambda wanted: headline_of(url, wanted),
            lambda wanted, headline: self._post(Told(wanted, headline)),
        )

    def compose(self) -> ComposeResult:
        yield Static(id="frame")
        yield Input(placeholder="a part of the host's name; enter keeps it, escape shows every host", id="host")
        yield Static(Text(KEYS), id="keys")

    def on_mount(self) -> None:
        self._ask()
        self.set_interval(ASK_EVERY_S, self._ask)
        self.set_interval(REDRAW_EVERY_S, self._redraw)

    def on_resize(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        """All of it, not only what changed: a terminal that was resized meanwhile, or written to, is right again."""
        self._draw()
        self.refresh()

    def on_unmount(self) -> None:
        self._looking.stop()
        self._telling.stop()

    def on_answered(self, answered: Answered) -> None:
        self._seen = answered.seen
        self._draw()

    def on_told(self, told: Told) -> None:
        """Show a headline, if its cell is still the selected one."""
        if self._wanted() == told.wanted:
            self._choose(headline=told.headline)

    def on_input_changed(self, changed: Input.Changed) -> None:
        self._choose(host=changed.value, headline="")

    def on_input_submitted(self) -> None:
        self._end_of_input()

    def action_engine(self, by: int) -> None:
        """Select another row."""
        engines = self._engines()
        if engines:
            at = engines.index(selected_engine(engines, self._view)) + by
            chosen = engines[max(0, min(at, len(engines) - 1))]
            self._choose(engine=chosen.service_instance_id, cell="", headline="")

    def action_cell(self, by: int) -> None:
        """Select another cell of the row, among those that are drawn; the newest one stays the newest."""
        engines = self._engines()
        if not engines:
            return
        engine = selected_engine(engines, self._view)
        cells = engine.cells[-columns_for(self._room().width, engines).slots :]
        here = selected_cell(engine, self._view)
        at = (cells.index(here) if here in cells else len(cells) - 1) + by
        at = max(0, min(at, len(cells) - 1))
        name = "" if at == len(cells) - 1 else cells[at].cell
        self._choose(engine=engine.service_instance_id, cell=name, headline="")

    def action_tell(self) -> None:
        """Ask what happened in the selected cell."""
        if wanted := self._wanted():
            # The newest cell becomes an older one while its story is told: from now on this one is meant.
            self._choose(engine=wanted.service_instance_id, cell=wanted.cell, headline="reading its executions …")
            self._telling.ask(wanted)

    def action_sort(self) -> None:
        """Sort by the next order; the selected engine stays selected."""
        orders = list(Sort)
        if wanted := self._wanted():
            self._choose(engine=wanted.service_instance_id)
        self._choose(sort=orders[(orders.index(self._view.sort) + 1) % len(orders)])

    def action_look_for_host(self) -> None:
        """Ask for a part of a host's name."""
        box = self.query_one(Input)
        if not box.display:
            box.display = True
            box.value = self._view.host
            self.set_focus(box)

    def action_every_host(self) -> None:
        """Show every host."""
        self.query_one(Input).value = ""
        self._choose(host="")
        self._end_of_input()

    def _end_of_input(self) -> None:
        self.query_one(Input).display = False
        self.set_focus(None)
        self._draw()

    def _post(self, message: Message) -> None:
        # The screen may be gone by now.
        with contextlib.suppress(RuntimeError):
            self.post_message(message)

    def _ask(self) -> None:
        self._looking.ask(range_for(columns_for(self._room().width, self._engines()).slots))

    def _engines(self) -> list[Engine]:
        return arranged(self._seen.engines, self._view.sort, self._view.host)

    def _wanted(self) -> Wanted | None:
        engines = self._engines()
        if not engines:
            return None
        engine = selected_engine(engines, self._view)
        return Wanted(engine.service_instance_id, selected_cell(engine, self._view).cell)

    def _choose(self, **chosen: object) -> None:
        self._view = replace(self._view, **chosen)  # type: ignore[arg-type]
        self._draw()

    def _room(self) -> Size:
        """Of the frame: all but the line of keys, and the line that is typed in."""
        is_typing = self.query_one(Input).display
        return Size(self.size.width, max(1, self.size.height - 1 - is_typing))

    def _draw(self) -> None:
        view = replace(self._view, waiting_s=self._looking.busy_s)
        self.query_one("#frame", Static).update(frame(self._seen, view, self._room(), datetime.now(UTC)))


def show(url: str, view: View) -> None:
    """Show the fleet until somebody quits, or a signal says so; the terminal is as it was before."""
    # Exported by a shell or a test runner, these would hold the view to the size of before.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    asyncio.run(_shown(Top(url, view)))


async def _shown(app: Top) -> None:
    loop = asyncio.get_running_loop()
    for number in STOPS:
        loop.add_signal_handler(number, app.exit)
    await app.run_async(mouse=False)

"""One frame of `tachograph top`: what stands where. Pure: the same for a terminal, a pipe and a test."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from engine_hooks.commands.counting import counted
from engine_hooks.commands.terminal import NAME_SHOWN_MAX, shortened
from queries.clocks_ahead import age_of, clock_words
from queries.top.fleet import SLOT_S, Cell, Engine, Sort, arranged, slot_of
from queries.top.seen import SLOTS_MAX, Seen

SLOT_COLUMNS: Final = 2
"""A letter and a flag."""
LABEL_EVERY_S: Final = 300
SILENT_AFTER_S: Final = 90.0
"""An engine that is so far behind the newest one is shown as silent."""
WAITING_AFTER_S: Final = 6.0
"""An answer that takes longer is worth a word."""
PRINTED_SLOTS_MIN: Final = 20
"""Ten minutes: what is printed goes back so far at least, where there is room, and further for cells only."""
NAME_COLUMN_MAX: Final = 64
"""Width of the column of names, however wide the output: pods have names of up to 63 characters."""
LINES_AROUND: Final = 8
"""Lines of a frame that are not engines: title, state, axis, marks, cell, headline (2), legend."""

LEVELS: Final = (
    (0.1, "S", "bold white on #2f7fc1"),
    (0.3, "s", "black on #8db7d8"),
    (0.6, "p", "black on #efa178"),
    (1.0, "P", "bold white on #d9480f"),
)
"""Up to which plain fraction a letter stands, and its colours: the dashboards'."""
NOTHING_TO_JUDGE: Final = ("·", "dim")
LEGEND: Final = "plain: S to 10%, s 30%, p 60%, P above, · no choice; ! stuck ^ inflated * both"


@dataclass(frozen=True)
class View:
    """What whoever looks has chosen."""

    sort: Sort = Sort.LOST
    host: str = ""
    engine: str = ""
    """`service_instance_id` of the selected one; '' is the first."""
    cell: str = ""
    """The selected one's name; '' is the newest, whichever that is."""
    headline: str = ""
    """What was told of the selected cell."""
    waiting_s: float = 0.0
    """For how long the present question has been unanswered."""
    place: str = ""
    """Where is asked, for the first frame."""


class Size(NamedTuple):
    """Of a frame, in characters; no height is as much as it takes."""

    width: int
    height: int | None


@dataclass(frozen=True)
class Columns:
    """Where the columns of a frame stand."""

    name: int
    package: int
    slots: int
    spare: int = 0
    """Beyond the last slot: room that a name longer than its column takes in its own row."""
    left: int = field(init=False)
    """Columns to the left of the first slot."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", 2 + self.name + 1 + self.package + 1 + 8 + 1 + 7 + 1)


def columns_for(width: int, engines: Sequence[Engine]) -> Columns:
    """As much of the names as fits beside some slots, and slots in what remains."""
    roomy = width >= 120
    longest_name = max((cell_len(label_of(one)) for one in engines), default=12)
    longest_package = max((cell_len(shown_name(one.engine_package)) for one in engines), default=7)
    name = max(8, min(longest_name, max(40, min(width // 8, NAME_COLUMN_MAX)) if roomy else 20))
    package = max(7, min(longest_package, max(24, min(width // 16, NAME_COLUMN_MAX)) if roomy else 8))
    taken = Columns(name, package, 0).left
    return Columns(name, package, max(1, min((width - taken) // SLOT_COLUMNS, SLOTS_MAX)))


def frame(seen: Seen, view: View, size: Size, now: datetime) -> Text:
    """Everything on the screen, a line each, no line wider than `size.width`."""
    engines = arranged(seen.engines, view.sort, view.host)
    lines = [_title(seen, engines, view), _state(seen, view, now)]
    if engines:
        lines += _grid(seen, engines, view, size)
    else:
        lines += [Text(""), *_nothing(seen, view)]
    for line in lines:
        line.truncate(size.width)
    return Text("\n", no_wrap=True).join(lines[: size.height])


def label_of(engine: Engine) -> str:
    """An engine as a person names it: its host, and what tells it apart from others there."""
    instance = engine.service_instance_id
    if not engine.host_name or instance.startswith(engine.host_name):
        return shown_name(instance)
    return shown_name(f"{engine.host_name}/{instance[-8:]}")


def shown_name(name: str) -> str:
    """A name as `shown`, of one of more than `NAME_SHOWN_MAX` characters its two ends: names of one kind differ there."""
    printed = "".join(one if one.isprintable() else "?" for one in name)
    return printed if cell_len(printed) <= NAME_SHOWN_MAX else fitted(printed, NAME_SHOWN_MAX)


def shown(text: str) -> str:
    """Text that came from elsewhere, without what would move the cursor, and no longer than names are."""
    return "".join(one if one.isprintable() else "?" for one in shortened(text))


def fitted(text: str, width: int) -> str:
    """Text in so many columns; too long a one without its middle, as names of one kind differ at their ends."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    tail = (width - 1) // 2
    return f"{set_cell_size(text, width - 1 - tail)}…{set_cell_size(text[::-1], tail)[::-1]}"


def selected_engine(engines: Sequence[Engine], view: View) -> Engine:
    """The one chosen; the first where that one is gone."""
    return next((one for one in engines if one.service_instance_id == view.engine), engines[0])


def selected_cell(engine: Engine, view: View) -> Cell:
    """The one chosen; the newest where that one is gone."""
    return next((one for one in engine.cells if one.cell == view.cell), engine.newest)


def _title(seen: Seen, engines: Sequence[Engine], view: View) -> Text:
    stuck = sum(one.newest.stuck for one in engines)
    inflated = sum(one.newest.inflated for one in engines)
    line = Text("tachograph top", style="bold")
    line.append(f"  {counted(len(engines), 'engine')}", style="not bold")
    line.append(f", {stuck} stuck", style="bold #d9480f" if stuck else "not bold")
    line.append(f", {inflated} inflated", style="bold #d9480f" if inflated else "not bold")
    line.append(f"  by {view.sort}", style="not bold")
    if view.host:
        line.append(f"  host has {shown(view.host)!r}", style="not bold")
    if seen.cut:
        line.append("  only the newest cells fit", style="bold")
    if newest := seen.newest:
        line.append(f"  {newest:%H:%M:%S} UTC", style="not bold")
    return line


def _state(seen: Seen, view: View, now: datetime) -> Text:
    """What is wrong, with the age of what is shown; else whose clock is ahead, and what was noted last."""
    problem = seen.problem
    if not problem and view.waiting_s > WAITING_AFTER_S:
        problem = f"ClickHouse has not answered for {view.waiting_s:.0f} s"
    if problem:
        age = f"{age_of((now - seen.at).total_seconds())} old: " if seen.at else ""
        return Text(f"! {age}{shown(problem)}", style="bold #d6204e")
    noted = " · ".join(f"{mark.at:%H:%M:%S} {shown(mark.text)}" + (f" ({shown(mark.about)})" if mark.about else "")
                       for mark in seen.marks[:3])  # fmt: skip
    line = Text(_clocks(seen.engines), style="bold #d9480f")
    if noted:
        line.append(f"  ▼ {noted}" if line else f"▼ {noted}", style="not bold default" if line else "bold")
    return line


def _clocks(engines: Sequence[Engine]) -> str:
    """Whose clock is ahead, the furthest in front; '' where none is."""
    ahead: dict[str, float] = {}
    for one in engines:
        host = shown(one.host_name) or label_of(one)
        ahead[host] = max(ahead.get(host, 0.0), one.newest.ahead_s)
    found = sorted((host for host, ahead_s in ahead.items() if ahead_s), key=lambda host: (-ahead[host], host))
    more = f", and {counted(len(found) - 1, 'host')} more" if found[1:] else ""
    return f"! {found[0]}: {clock_words(ahead[found[0]])}{more}" if found else ""


def _nothing(seen: Seen, view: View) -> list[Text]:
    if seen.engines:
        return [Text(f"No host's name contains {shown(view.host)!r}. Press / to look for another, escape for all.")]
    if seen.at is None:
        return [Text("" if seen.problem else f"Asking ClickHouse at {view.place} …")]
    return [Text("No graph executions are stored yet: `tachograph up` runs two engines to look at.")]


def _grid(seen: Seen, engines: Sequence[Engine], view: View, size: Size) -> list[Text]:
    columns = columns_for(size.width, engines)
    newest = _last_slot(seen)
    if size.height is None:
        oldest = min(cell.slots.start for one in engines for cell in one.cells)
        columns = replace(columns, slots=min(columns.slots, max(PRINTED_SLOTS_MIN, newest - oldest + 1)))
        columns = replace(columns, spare=max(0, size.width - columns.left - SLOT_COLUMNS * columns.slots))
    slots = range(newest - columns.slots + 1, newest + 1)
    chosen = selected_engine(engines, view)
    cell = selected_cell(chosen, view)
    rows = [_row(one, columns, slots, seen, cell if one is chosen else None) for one in _page(engines, chosen, size)]
    return [
        _axis(columns, slots),
        _marks(seen, columns, slots),
        *rows,
        *_filling(len(rows), size),
        _told_of_cell(chosen, cell),
        *_headline(view, size.width),
        Text(LEGEND, style="dim"),
    ]


def _last_slot(seen: Seen) -> int:
    """The slot that time ends in: of the cells that do not lie in the future, the last one's."""
    now = max(slot_of(one.newest.seen_at) for one in seen.engines)
    cells = (cell.slots for one in seen.engines for cell in one.cells)
    return max((min(slots[-1], now) for slots in cells if slots.start <= now), default=now)


def _page(engines: Sequence[Engine], chosen: Engine, size: Size) -> Sequence[Engine]:
    """The engines that fit, the chosen one among them."""
    if size.height is None:
        return engines
    fit = max(1, size.height - LINES_AROUND)
    first = engines.index(chosen) // fit * fit
    return engines[first : first + fit]


def _filling(rows: int, size: Size) -> list[Text]:
    """Blank lines, so that what is told of the cell stays where it is."""
    return [] if size.height is None else [Text("")] * (size.height - LINES_AROUND - rows)


def _axis(columns: Columns, slots: range) -> Text:
    """Names of the columns, and the time of every fifth minute above its slot."""
    heads = f"  {set_cell_size('engine', columns.name)} {set_cell_size('package', columns.package)} tokens/s  lost s "
    times = [" "] * (SLOT_COLUMNS * len(slots))
    for place, slot in enumerate(slots):
        label = _clock(slot)
        at = place * SLOT_COLUMNS
        if slot * SLOT_S % LABEL_EVERY_S == 0 and at + len(label) <= len(times):
            times[at : at + len(label)] = label
    return Text(heads + "".join(times), style="dim")


def _clock(slot: int) -> str:
    minutes = slot * SLOT_S // 60
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def _marks(seen: Seen, columns: Columns, slots: range) -> Text:
    """An arrow above each slot in which something was noted; what came after the last one stands above it."""
    places = [" "] * (SLOT_COLUMNS * len(slots))
    for mark in seen.marks:
        slot = min(slot_of(mark.at), slots[-1])
        if slot in slots:
            places[slots.index(slot) * SLOT_COLUMNS] = "▼"
    return Text(" " * columns.left + "".join(places), style="bold")


def _row(engine: Engine, columns: Columns, slots: range, seen: Seen, chosen: Cell | None) -> Text:
    newest = seen.newest or engine.newest.seen_at
    behind_s = (newest - engine.newest.seen_at).total_seconds()
    name_style = "bold" if chosen else ""
    line = Text("> " if chosen else "  ", style=name_style)
    spare = columns.spare
    for name, width, style in (
        (label_of(engine), columns.name, name_style),
        (shown_name(engine.engine_package), columns.package, ""),
    ):
        taken = max(0, min(cell_len(name) - width, spare))
        spare -= taken
        line.append(fitted(name, width + taken) + " ", style=style)
    if behind_s > SILENT_AFTER_S:
        line.append(f"{'-' + age_of(behind_s):>8} ", style="bold")
    else:
        line.append(f"{_figure(engine.newest.tokens_per_s):>8} ")
    line.append(f"{f'{engine.lost_s:,.1f}' if engine.lost_s >= 0.05 else '':>7} ", style="bold")
    for part in _slots(engine, slots, chosen):
        line.append_text(part)
    return line


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _slots(engine: Engine, slots: range, chosen: Cell | None) -> Iterator[Text]:
    by_slot = {slot: cell for cell in engine.cells for slot in _within(cell.slots, slots)}
    # A long cell does not hide those that begin within it.
    by_slot |= {cell.slots.start: cell for cell in engine.cells if cell.slots.start in slots}
    if not by_slot and engine.newest.ahead_s:
        width = SLOT_COLUMNS * len(slots)
        yield Text(fitted(f"{clock_words(engine.newest.ahead_s):>{width}}", width), style="bold #d9480f")
        return
    for slot in slots:
        cell = by_slot.get(slot)
        yield _drawn(cell, is_chosen=cell is chosen) if cell else Text(" " * SLOT_COLUMNS)


def _within(these: range, those: range) -> range:
    """What two stretches have in common."""
    return range(max(these.start, those.start), min(these.stop, those.stop))


def _drawn(cell: Cell, *, is_chosen: bool) -> Text:
    letter, style = level_of(cell)
    return Text(letter + flag_of(cell), style=f"{style} reverse underline" if is_chosen else style)


def level_of(cell: Cell) -> tuple[str, str]:
    """The letter and the style of a cell's plain fraction."""
    fraction = cell.plain_fraction
    if fraction is None:
        return NOTHING_TO_JUDGE
    return next(((letter, style) for upto, letter, style in LEVELS if fraction <= upto), LEVELS[-1][1:])


def flag_of(cell: Cell) -> str:
    """Stuck, inflated, both, or a blank."""
    return {(True, True): "*", (True, False): "!", (False, True): "^"}.get((cell.stuck, cell.inflated), " ")


def _told_of_cell(engine: Engine, cell: Cell) -> Text:
    """The selected cell in one line."""
    plain = "nothing to judge" if cell.plain_fraction is None else f"{cell.plain_fraction:.0%} plain"
    flags = [name for name, is_set in (("stuck", cell.stuck), ("inflated", cell.inflated)) if is_set]
    parts = [
        f"{cell.started_at:%H:%M:%S}",
        label_of(engine),
        f"cell {shown(cell.cell)}",
        ", ".join([plain, *flags]),
        f"{_figure(cell.tokens_per_s)} tokens/s",
        shown(engine.engine_recipe),
    ]
    return Text(" · ".join(part for part in parts if part), style="bold")


def _headline(view: View, width: int) -> list[Text]:
    """Two lines of what was told of the cell."""
    words = shown(view.headline).split()
    lines = [""]
    for word in words:
        if lines[-1] and cell_len(f"{lines[-1]} {word}") > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    if len(lines) > 2:
        lines = [lines[0], f"{lines[1][: max(0, width - 2)]} …"]
    return [Text(line) for line in (*lines, "")[:2]]

"""A story for the terminal."""

from collections.abc import Iterator, Sequence

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from engine_hooks.commands.counting import counted
from engine_hooks.commands.terminal import shortened
from queries.findings.findings import Diagnosis, Kind, QueryUse
from queries.postmortem.markdown import moment, queries_of, references
from queries.postmortem.sql_behind import sql_behind
from queries.postmortem.story import Chapter, Second, Story, cause_of
from queries.postmortem.told import ToldRange

_HARMLESS = frozenset(
    {Kind.PLAIN_RIGHT, Kind.HARMLESS_DELAY, Kind.FEEDBACK_BOUND, Kind.BATCH_CHANGED, Kind.IDLE, Kind.NO_SPECULATION}
)
_MIXED_ABOVE = 0.2
"""A second is drawn mixed when plain and speculative rounds each took more than this share of it."""


def rendered(story: Story, with_sql: bool) -> RenderableType:
    """The whole story; `with_sql` prints each query in full, else the command that asks it."""
    known = queries_of(story)
    return Group(
        _headline(story),
        _figures(story),
        _strip(story),
        *(_chapter(chapter, known) for chapter in story.chapters),
        *_behind(known, with_sql),
    )


def table_of(among: ToldRange) -> RenderableType:
    """The flagged cells of a range, the costliest first."""
    if not among.flagged:
        return Text(f"None of {counted(among.cells, 'cell')} is flagged; this is the newest.", style="green")
    are = "is" if among.flagged == 1 else "are"
    table = Table(
        title=f"{among.flagged:,} of {counted(among.cells, 'cell')} {are} flagged", title_justify="left", box=None
    )
    for name in ("host", "cell", "began", "what it is", "tokens lost by choices", "lost by choices"):
        table.add_column(name, justify="right" if "lost" in name else "left", header_style="dim", overflow="fold")
    for one in among.told:
        story = one.story
        loss = story.diagnosis.expected_loss_percent
        table.add_row(
            shortened(story.engine.host_name or story.engine.service_instance_id),
            shortened(story.cell),
            moment(story.began_ns),
            cause_of(story.diagnosis) + (", of what sampling left" if story.executions_dropped else ""),
            f"{story.diagnosis.tokens_lost:,.0f}",
            "" if loss is None else f"{loss:.1f} %",
        )
    if among.flagged > len(among.told):
        table.caption = f"the newest {len(among.told)} of them; narrow the range by --from, --to or --engine"
    return table


def _headline(story: Story) -> Panel:
    engine = story.engine
    where = ", ".join(
        filter(None, [engine.host_name, engine.service_instance_id, engine.engine_package, f"cell {story.cell}"])
    )
    text = Text(f"{story.headline}\n", style="bold")
    text.append(f"{shortened(where)}\n{moment(story.began_ns)} to {moment(story.ended_ns)}", style="not bold dim")
    colour = "green" if _is_harmless(story.diagnosis) else "red"
    # Of a cell of which there is only a rest, nobody knows that it is well.
    return Panel.fit(text, border_style="yellow" if colour == "green" and story.executions_dropped else colour)


def _is_harmless(diagnosis: Diagnosis) -> bool:
    return diagnosis.is_well or diagnosis.label in _HARMLESS


def _figures(story: Story) -> RenderableType:
    """As many beside each other as the terminal is wide."""
    return Columns(
        [Text.assemble((f"{figure.name} ", "dim"), figure.value) for figure in story.figures], padding=(0, 3)
    )


def _strip(story: Story) -> RenderableType:
    """One letter a second, and a mark under those in which an estimate was poisoned."""
    line = Text("\n")
    for second in story.strip:
        line.append_text(_letter(second))
    marks = [" "] * len(story.strip)
    for at_s in story.marks_s:
        if 0 <= at_s < len(marks):
            marks[int(at_s)] = "▲"
    legend = "   one letter a second: S speculative, P plain, m both, o other, · idle"
    under = "".join(marks).rstrip()
    line.append(legend, style="dim")
    if under:
        line.append(f"\n{under}", style="bold red")
        line.append("  an estimate was poisoned here", style="dim")
    return line


def _letter(second: Second) -> Text:
    if second.plain > _MIXED_ABOVE and second.speculative > _MIXED_ABOVE:
        return Text("m", style="yellow")
    most = max(second)
    if most < 0.05:
        return Text("·", style="dim")
    if most == second.plain:
        return Text("P", style="bold orange3")
    return Text("S", style="blue") if most == second.speculative else Text("o", style="dim")


def _chapter(chapter: Chapter, known: Sequence[QueryUse]) -> RenderableType:
    lines = Table.grid(padding=(0, 1))
    lines.add_column()
    lines.add_column(overflow="fold")
    for sentence in chapter.sentences:
        text = Text(shortened(sentence.text))
        text.append(f" {references(sentence.queries, list(known))}", style="cyan")
        lines.add_row("•", text)
    return Group(Text(f"\n{chapter.title}", style="bold"), lines)


def _behind(known: Sequence[QueryUse], with_sql: bool) -> Iterator[RenderableType]:
    if known:
        yield Text("\nThe SQL behind it" + ("" if with_sql else " (--sql prints it)"), style="bold")
    for number, use in enumerate(known, 1):
        behind = sql_behind(use)
        yield Text(f"[{number}] {behind.command}", style="cyan")
        if with_sql:
            values = "".join(f"-- param_{name} = {value}\n" for name, value in behind.values.items())
            yield Syntax(values + behind.sql.rstrip(), "sql", background_color="default", word_wrap=True)

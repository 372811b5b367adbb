"""A story as Markdown, ready for an issue or a pull request."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from queries.findings.findings import QueryUse
from queries.postmortem.sql_behind import sql_behind
from queries.postmortem.story import Story
from queries.terminal import visible


def markdown_of(story: Story) -> str:
    """The whole story, the SQL behind it folded away at its end."""
    return "\n".join(visible(line) for line in _lines(story)) + "\n"


def moment(unix_ns: int) -> str:
    """An instant in UTC, to the millisecond."""
    return f"{datetime.fromtimestamp(unix_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"


def queries_of(story: Story) -> list[QueryUse]:
    """Every query behind the story, each once, in the order in which sentences name them."""
    found: list[QueryUse] = []
    for chapter in story.chapters:
        for sentence in chapter.sentences:
            found += [use for use in sentence.queries if use not in found]
    return found


def references(uses: Iterable[QueryUse], known: list[QueryUse]) -> str:
    """`[1] [3]`: the numbers of these queries in the list at the end."""
    return " ".join(f"[{known.index(use) + 1}]" for use in uses)


def _lines(story: Story) -> Iterator[str]:
    engine = story.engine
    known = queries_of(story)
    yield f"## {story.headline}"
    yield ""
    yield (
        f"Cell `{story.cell}` of `{engine.service_instance_id}`"
        + (f" on {engine.host_name}" if engine.host_name else "")
        + (f", package `{engine.engine_package}`" if engine.engine_package else "")
        + f", {moment(story.began_ns)} to {moment(story.ended_ns)}."
    )
    yield ""
    yield "| " + " | ".join(figure.name for figure in story.figures) + " |"
    yield "|" + " --- |" * len(story.figures)
    yield "| " + " | ".join(figure.value for figure in story.figures) + " |"
    for chapter in story.chapters:
        yield ""
        yield f"### {chapter.title}"
        for sentence in chapter.sentences:
            yield f"- {sentence.text} {references(sentence.queries, known)}".rstrip()
    yield from _sql(known)


def _sql(known: list[QueryUse]) -> Iterator[str]:
    if not known:
        return
    yield ""
    yield "<details><summary>The SQL behind it</summary>"
    for number, use in enumerate(known, 1):
        behind = sql_behind(use)
        yield ""
        yield f"[{number}] `{behind.command}`"
        yield ""
        yield "```sql"
        yield from (f"-- param_{name} = {value}" for name, value in behind.values.items())
        yield from behind.sql.rstrip().splitlines()
        yield "```"
    yield ""
    yield "</details>"

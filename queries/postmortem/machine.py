"""A story as JSON: the diagnosis field by field, every sentence with its SQL."""

from dataclasses import asdict
from typing import Any

from queries.findings.findings import QueryUse
from queries.postmortem.sql_behind import sql_behind
from queries.postmortem.story import Chapter, Story


def json_of(story: Story, *, with_sql: bool = True) -> dict[str, Any]:
    """What `json.dumps` takes. Instants are Unix nanoseconds; names carry their units.

    Without SQL, a sentence names only the commands that show it.
    """
    return {
        "headline": story.headline,
        "engine": story.engine._asdict(),
        "cell": story.cell,
        "began_unix_ns": story.began_ns,
        "ended_unix_ns": story.ended_ns,
        "executions": story.executions,
        "executions_dropped": story.executions_dropped,
        "tokens_per_s": story.tokens_per_s,
        "diagnosis": asdict(story.diagnosis),
        "chapters": [_chapter(chapter, with_sql) for chapter in story.chapters],
        "seconds": [second._asdict() for second in story.strip],
    }


def _chapter(chapter: Chapter, with_sql: bool) -> dict[str, Any]:
    return {
        "title": chapter.title,
        "kind": chapter.kind,
        "sentences": [
            {"text": sentence.text, "queries": [_query(use, with_sql) for use in sentence.queries]}
            for sentence in chapter.sentences
        ],
    }


def _query(use: QueryUse, with_sql: bool) -> dict[str, Any]:
    behind = sql_behind(use)
    return behind._asdict() if with_sql else {"command": behind.command}

"""A story as JSON: the diagnosis field by field, every sentence with its SQL."""

from dataclasses import asdict
from typing import Any

from queries.postmortem.sql_behind import sql_behind
from queries.postmortem.story import Chapter, Story


def json_of(story: Story) -> dict[str, Any]:
    """What `json.dumps` takes. Instants are Unix nanoseconds; names carry their units."""
    return {
        "headline": story.headline,
        "engine": story.engine._asdict(),
        "cell": story.cell,
        "began_unix_ns": story.began_ns,
        "ended_unix_ns": story.ended_ns,
        "diagnosis": asdict(story.diagnosis),
        "chapters": [_chapter(chapter) for chapter in story.chapters],
        "seconds": [second._asdict() for second in story.strip],
    }


def _chapter(chapter: Chapter) -> dict[str, Any]:
    return {
        "title": chapter.title,
        "kind": chapter.kind,
        "sentences": [
            {"text": sentence.text, "queries": [sql_behind(use)._asdict() for use in sentence.queries]}
            for sentence in chapter.sentences
        ],
    }

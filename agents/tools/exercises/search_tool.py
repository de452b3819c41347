"""The exercise search tool, `gymbro.exercise.search` (specs/text-run.md §3).

The library is read by one statement and cached in the process. A cheap check each two seconds, ahead of
the next search while there are any, finds changes of the table: a search waits for no statement.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import msgspec
import psycopg
from msgspec import Meta, Struct
from psycopg.rows import dict_row

from agents.tools.arguments import SEARCH_SCHEMA, TopK, read_arguments
from agents.tools.base import Tool, ToolFailure
from agents.tools.exercises.index import Exercise, Library, to_dto
from config import database
from config.cache import CachedValue

RECHECK_S: Final = 2.0

# xmin, the transaction that wrote a row, changes with every write: also with one that left updated_at
# as it was, and with one that committed after a newer one.
_STATE = """
    SELECT count(*), coalesce(max(updated_at), 'epoch'), coalesce(sum(xmin::text::bigint), 0)
      FROM agents_exercise
"""
_ROWS = """
    SELECT id, name, name_en, aliases, description, description_en, muscle_group, category, equipment,
           difficulty, target_muscles, secondary_muscles, default_sets, default_reps, steps, tips, tags,
           media, source, is_custom, is_official,
           floor(extract(epoch FROM created_at) * 1000)::bigint AS created_at,
           floor(extract(epoch FROM updated_at) * 1000)::bigint AS updated_at
      FROM agents_exercise
"""


class _Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1)]
    top_k: TopK = 5


class LibraryCache:
    """The newest library that this process has read, at most `seconds` behind the table."""

    def __init__(self, *, seconds: float = RECHECK_S) -> None:
        self._state: tuple[Any, ...] | None = None
        self._library: Library | None = None
        self._checked = CachedValue(self._check, seconds=seconds)

    async def current(self) -> Library:
        """Return the library; raise what the database does."""
        return await self._checked.get()

    async def _check(self) -> Library:
        async with database.connection() as connection:
            state = await (await connection.execute(_STATE)).fetchone()
            if self._library is None or state != self._state:
                rows = await _exercises(connection)
                # A thousand exercises take 0.1 s, which would block the loop that serves streams.
                self._library = await asyncio.to_thread(Library, rows)
                # The state was read before the rows: the next check finds changes in between.
                self._state = state
        return self._library


_cache = LibraryCache()


async def search_exercises(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return `{total, results}` for `{query, top_k}`: ExerciseDtos, and their number (seed 002).

    Raise ToolFailure with `invalid_arguments` or `exercise_search_failed`.
    """
    parsed = read_arguments(arguments, _Arguments)
    try:
        library = await _cache.current()
    except (psycopg.Error, OSError) as problem:
        raise ToolFailure(
            "exercise_search_failed", "The exercise library cannot be read now."
        ) from problem
    found = library.search(parsed.query, parsed.top_k)
    return {"total": len(found), "results": [to_dto(exercise) for exercise in found]}


async def _exercises(connection: psycopg.AsyncConnection[Any]) -> tuple[Exercise, ...]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        rows = await (await cursor.execute(_ROWS)).fetchall()
    return tuple(msgspec.convert(row, Exercise) for row in rows)


TOOL: Final = Tool(
    name="gymbro.exercise.search",
    description="Searches the exercise library by words in Chinese or English: an exercise, a muscle, "
    "equipment, a difficulty or a training split. Returns the best matches with steps and tips.",
    parameters=SEARCH_SCHEMA,
    call=search_exercises,
    idempotent=True,
    timeout_s=5.0,
)

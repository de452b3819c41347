"""The prompts in use: what a run reads when it starts.

One statement, remembered for half a second, so an activation takes effect within a second in every
process, and at once in the one where it happened. Where a prompt is split between two versions the
thread decides, by a hash that SQL (`agents.claims`) and `chosen_for` compute alike: nothing is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection as django_connection

from config.database import connection
from prompts.models import PromptKind, PromptVersion
from prompts.remembered import Remembered

_KINDS: Final = (PromptKind.AGENT_SYSTEM, PromptKind.AGENT_TOOLS)  # in the order of the message
_PLACES: Final[dict[str, int]] = {
    PromptKind.AGENT_SYSTEM: 0,
    PromptKind.SYSTEM: 0,
    PromptKind.AGENT_TOOLS: 1,
    PromptKind.TOOLS: 1,
}
_READ: Final = """
    SELECT p.kind, p.id, p.name, v.id, v.number, v.content, s.id, s.number, s.content, p.split_percent
      FROM prompts_prompt p
      LEFT JOIN prompts_appsetting chosen ON chosen.key = 'prompt_label'
      LEFT JOIN prompts_promptlabel l ON l.prompt_id = p.id AND l.name = chosen.value #>> '{}'
      JOIN prompts_promptversion v ON v.id = coalesce(l.version_id, p.active_version_id)
      LEFT JOIN prompts_promptversion s ON s.id = p.split_version_id AND l.id IS NULL
     WHERE p.is_active AND p.kind = ANY(%s)
"""
"""The active version of each, or the one that carries the label of the setting `prompt_label`."""


@dataclass(frozen=True, slots=True)
class ActiveVersion:
    """Which wording a run used; recorded on the run."""

    kind: str
    prompt_id: int
    name: str
    version_id: int
    number: int


@dataclass(frozen=True, slots=True)
class Part:
    """One prompt in use: its version, and the other one that `percent` of 100 threads get."""

    version: ActiveVersion
    content: str
    other: ActiveVersion | None = None
    other_content: str = ""
    percent: int = 0

    @property
    def salt(self) -> str:
        """What the thread is hashed with: another split deals the threads anew."""
        return f"{self.version.version_id}:{self.other.version_id}:" if self.other else ""

    def gives_other(self, thread_id: UUID) -> bool:
        """Whether this thread belongs to the other version's share."""
        digest = hashlib.md5(f"{self.salt}{thread_id}".encode(), usedforsecurity=False).hexdigest()
        return int(digest[:8], 16) % 100 < self.percent


@dataclass(frozen=True, slots=True)
class ActivePrompts:
    """The effective system message and the versions that it was made of.

    Of prompts that are split these are the active ones; `chosen_for` gives a thread's own.
    """

    system: str
    versions: tuple[ActiveVersion, ...]
    parts: tuple[Part, ...] = ()

    @property
    def is_split(self) -> bool:
        return any(part.other for part in self.parts)

    def chosen_for(self, thread_id: UUID) -> str:
        """The system message for a run of this thread."""
        if not self.is_split:
            return self.system
        return _joined(
            part.other_content if part.other and part.gives_other(thread_id) else part.content
            for part in self.parts
        )

    def as_json(self) -> list[dict[str, Any]]:
        """The versions, for a JSON column."""
        return [asdict(version) for version in self.versions]

    def choices(self) -> list[dict[str, Any]]:
        """The same where prompts are split: SQL chooses by the hash of the thread."""
        return [
            {
                "active": asdict(part.version),
                "other": asdict(part.other) if part.other else None,
                "salt": part.salt,
                "percent": part.percent,
            }
            for part in self.parts
        ]


async def active_prompts() -> ActivePrompts:
    """The prompts that a run starting now uses; at most half a second old."""
    return await _remembered.get()


def forget() -> None:
    """Let this process read again at once; called after an activation."""
    _remembered.forget()


def effective_system_message(*, instead: dict[str, str] | None = None) -> str:
    """The same system message for pages of admin; `instead` gives other wordings by kind."""
    with django_connection.cursor() as cursor:
        cursor.execute(_READ, [[kind.value for kind in _KINDS]])
        contents = {row[0]: row[5] for row in cursor.fetchall()} | (instead or {})
    return _joined(contents.get(kind.value, "") for kind in _KINDS)


def system_message_of(versions: list[dict[str, Any]]) -> str:
    """The system message that a run had, from the versions recorded on it; for pages of admin."""
    ids = [version["version_id"] for version in versions]
    contents = dict(PromptVersion.objects.filter(pk__in=ids).values_list("pk", "content"))
    return _joined(contents.get(version_id, "") for version_id in ids)


_WORDINGS: Final = "SELECT id, content FROM prompts_promptversion WHERE id = ANY(%s)"


async def text_of(version_ids: list[int]) -> str:
    """The system message that these versions make, in their order."""
    async with connection() as held:
        contents = dict(await (await held.execute(_WORDINGS, [version_ids])).fetchall())
    return _joined(contents.get(version_id, "") for version_id in version_ids)


_VERSION: Final = """
    SELECT p.kind, p.id, p.name, v.id, v.number
      FROM prompts_promptversion v JOIN prompts_prompt p ON p.id = v.prompt_id
     WHERE v.id = %s AND p.deleted_at IS NULL
"""


async def with_version(version_id: int) -> tuple[ActiveVersion, ...] | None:
    """The versions in use, with this one in the place of the one of its kind; None if there is none.

    A `system` prompt is tried as `agent_system`, a `tools` prompt as `agent_tools`.
    """
    async with connection() as held:
        row = await (await held.execute(_VERSION, [version_id])).fetchone()
    if row is None:
        return None
    tried = ActiveVersion(*row)
    place = _PLACES[tried.kind]
    others = [one for one in (await active_prompts()).versions if _PLACES[one.kind] != place]
    return tuple(sorted([*others, tried], key=lambda one: _PLACES[one.kind]))


_LABELLED: Final = """
    SELECT p.kind, p.id, p.name, v.id, v.number, l.id IS NOT NULL
      FROM prompts_prompt p
      LEFT JOIN prompts_promptlabel l ON l.prompt_id = p.id AND l.name = %s
      JOIN prompts_promptversion v ON v.id = coalesce(l.version_id, p.active_version_id)
     WHERE p.is_active AND p.kind = ANY(%s)
"""


async def with_label(name: str) -> tuple[ActiveVersion, ...] | None:
    """The versions in use, those that carry the label in their places; None if no prompt has it."""
    async with connection() as held:
        cursor = await held.execute(_LABELLED, [name, [kind.value for kind in _KINDS]])
        rows = await cursor.fetchall()
    if not any(labelled for *_, labelled in rows):
        return None
    found = [ActiveVersion(*facts) for *facts, _ in rows]
    return tuple(sorted(found, key=lambda one: _PLACES[one.kind]))


async def _read() -> ActivePrompts:
    async with connection() as held:
        cursor = await held.execute(_READ, [[kind.value for kind in _KINDS]])
        return _made_of(await cursor.fetchall())


def _made_of(rows: Iterable[tuple[Any, ...]]) -> ActivePrompts:
    parts = tuple(_part(*row) for row in sorted(rows, key=lambda row: _KINDS.index(row[0])))
    return ActivePrompts(
        system=_joined(part.content for part in parts),
        versions=tuple(part.version for part in parts),
        parts=parts,
    )


def _part(
    kind: str,
    prompt_id: int,
    name: str,
    version_id: int,
    number: int,
    content: str,
    other_id: int | None,
    other_number: int | None,
    other_content: str | None,
    percent: int,
) -> Part:
    version = ActiveVersion(kind, prompt_id, name, version_id, number)
    if other_id is None or other_number is None or other_id == version_id:
        return Part(version, content)
    other = ActiveVersion(kind, prompt_id, name, other_id, other_number)
    return Part(version, content, other, other_content or "", percent)


def _joined(contents: Iterable[str]) -> str:
    return "\n\n".join(content for content in contents if content.strip())


_remembered: Final = Remembered(_read, seconds=0.5)

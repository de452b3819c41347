"""The active prompts, which a run reads when it starts.

One statement reads them and is cached for half a second: an activation takes effect within a second
in every process, and at once in its own. If a prompt is split between two versions, a hash of the
thread chooses; SQL (`conversations.runs.leases`) and `choose_system` compute the same hash, and nothing
is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from uuid import UUID

from config import sql
from config.cache import CachedValue
from prompts import app_settings
from prompts.models import PromptKind, PromptVersion

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
"""The active version of each prompt, or the one with the label of the setting `prompt_label`."""


@dataclass(frozen=True, slots=True)
class ActiveVersion:
    """The prompt version that a run used; recorded on the run."""

    kind: str
    prompt_id: int
    name: str
    version_id: int
    number: int


@dataclass(frozen=True, slots=True)
class Part:
    """An active prompt: its version, and the other version that `percent` of 100 threads get."""

    version: ActiveVersion
    content: str
    other: ActiveVersion | None = None
    other_content: str = ""
    percent: int = 0

    @property
    def salt(self) -> str:
        """The salt of the thread's hash, so that each split distributes the threads anew."""
        return f"{self.version.version_id}:{self.other.version_id}:" if self.other else ""

    def gives_other(self, thread_id: UUID) -> bool:
        """Return whether this thread belongs to the other version's share."""
        digest = hashlib.md5(f"{self.salt}{thread_id}".encode(), usedforsecurity=False).hexdigest()
        return int(digest[:8], 16) % 100 < self.percent


@dataclass(frozen=True, slots=True)
class ActivePrompts:
    """The effective system message and the versions that it consists of.

    For split prompts these are the active versions; `choose_system` returns the message of a thread.
    """

    system: str
    versions: tuple[ActiveVersion, ...]
    parts: tuple[Part, ...] = ()

    @property
    def is_split(self) -> bool:
        return any(part.other for part in self.parts)

    def choose_system(self, thread_id: UUID) -> str:
        """Return the system message for a run of this thread."""
        if not self.is_split:
            return self.system
        return _join(
            part.other_content if part.other and part.gives_other(thread_id) else part.content
            for part in self.parts
        )

    def choose_versions(self, thread_id: UUID) -> list[ActiveVersion]:
        """Return the versions of which `choose_system` makes the message."""
        return [
            part.other if part.other and part.gives_other(thread_id) else part.version
            for part in self.parts
        ]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the versions, for a JSON column."""
        return [asdict(version) for version in self.versions]

    def choices(self) -> list[dict[str, Any]]:
        """Return both versions of split prompts; SQL chooses by the hash of the thread."""
        return [
            {
                "active": asdict(part.version),
                "other": asdict(part.other) if part.other else None,
                "salt": part.salt,
                "percent": part.percent,
            }
            for part in self.parts
        ]


async def get_active_prompts() -> ActivePrompts:
    """Return the active prompts; cached for half a second."""
    return await _cache.get()


async def get_effective_prompts() -> ActivePrompts:
    """Return the prompts of runs that start now; none if the prompt mode is passthrough."""
    if await app_settings.aget("prompt_mode") == "passthrough":
        return ActivePrompts("", ())
    return await get_active_prompts()


def read_system_message(*, overrides: dict[str, str] | None = None) -> str:
    """Return the effective system message for admin; `overrides` replaces wordings by kind."""
    rows = sql.fetch(_READ, [[kind.value for kind in _KINDS]])
    contents = {row[0]: row[5] for row in rows} | (overrides or {})
    return _join(contents.get(kind.value, "") for kind in _KINDS)


def read_recorded_message(versions: list[dict[str, Any]]) -> str:
    """Return the system message of a run from its recorded versions, for admin."""
    ids = [version["version_id"] for version in versions]
    contents = dict(PromptVersion.objects.filter(pk__in=ids).values_list("pk", "content"))
    return _join(contents.get(version_id, "") for version_id in ids)


_WORDINGS: Final = "SELECT id, content FROM prompts_promptversion WHERE id = ANY(%s)"


async def compose_versions(version_ids: list[int]) -> str:
    """Return the system message of these versions, in their order."""
    contents = dict(await sql.every(_WORDINGS, [version_ids]))
    return _join(contents.get(version_id, "") for version_id in version_ids)


_VERSION: Final = """
    SELECT p.kind, p.id, p.name, v.id, v.number
      FROM prompts_promptversion v JOIN prompts_prompt p ON p.id = v.prompt_id
     WHERE v.id = %s AND p.deleted_at IS NULL
"""


async def override_version(version_id: int) -> tuple[ActiveVersion, ...] | None:
    """Return the active versions with this one replacing that of its kind; None if it does not exist.

    A `system` prompt replaces `agent_system`, and a `tools` prompt replaces `agent_tools`.
    """
    row = await sql.one(_VERSION, [version_id])
    if row is None:
        return None
    tried = ActiveVersion(*row)
    place = _PLACES[tried.kind]
    others = [one for one in (await get_active_prompts()).versions if _PLACES[one.kind] != place]
    return tuple(sorted([*others, tried], key=lambda one: _PLACES[one.kind]))


_LABELLED: Final = """
    SELECT p.kind, p.id, p.name, v.id, v.number, l.id IS NOT NULL
      FROM prompts_prompt p
      LEFT JOIN prompts_promptlabel l ON l.prompt_id = p.id AND l.name = %s
      JOIN prompts_promptversion v ON v.id = coalesce(l.version_id, p.active_version_id)
     WHERE p.is_active AND p.kind = ANY(%s)
"""


async def override_label(name: str) -> tuple[ActiveVersion, ...] | None:
    """Return the active versions, replaced by those with the label; None if no prompt has it."""
    rows = await sql.every(_LABELLED, [name, [kind.value for kind in _KINDS]])
    if not any(labelled for *_, labelled in rows):
        return None
    found = [ActiveVersion(*facts) for *facts, _ in rows]
    return tuple(sorted(found, key=lambda one: _PLACES[one.kind]))


async def _read() -> ActivePrompts:
    rows = await sql.every(_READ, [[kind.value for kind in _KINDS]])
    parts = tuple(_build_part(row) for row in sorted(rows, key=lambda row: _KINDS.index(row[0])))
    return ActivePrompts(
        system=_join(part.content for part in parts),
        versions=tuple(part.version for part in parts),
        parts=parts,
    )


def _build_part(row: tuple[Any, ...]) -> Part:
    *facts, content, other_id, other_number, other_content, percent = row
    version = ActiveVersion(*facts)
    if other_id in (None, version.version_id):
        return Part(version, content)
    other = replace(version, version_id=other_id, number=other_number)
    return Part(version, content, other, other_content, percent)


def _join(contents: Iterable[str]) -> str:
    return "\n\n".join(content for content in contents if content.strip())


_cache: Final = CachedValue(_read, seconds=0.5)
clear_cache: Final = _cache.clear

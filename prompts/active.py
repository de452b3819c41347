"""The prompts in use: what a run reads when it starts.

One statement, remembered for half a second, so an activation takes effect within a second in every
process, and at once in the one where it happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from config.database import connection
from prompts.models import Prompt, PromptKind
from prompts.remembered import Remembered

_KINDS: Final = (PromptKind.AGENT_SYSTEM, PromptKind.AGENT_TOOLS)  # in the order of the message
_READ: Final = """
    SELECT p.kind, p.id, p.name, v.id, v.number, v.content
      FROM prompts_prompt p
      JOIN prompts_promptversion v ON v.id = p.active_version_id
     WHERE p.is_active AND p.kind = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class ActiveVersion:
    """Which wording a run used; recorded on the run."""

    kind: str
    prompt_id: int
    name: str
    version_id: int
    number: int


@dataclass(frozen=True, slots=True)
class ActivePrompts:
    """The effective system message and the versions that it was made of."""

    system: str
    versions: tuple[ActiveVersion, ...]

    def as_json(self) -> list[dict[str, Any]]:
        """The versions, for a JSON column."""
        return [asdict(version) for version in self.versions]


async def active_prompts() -> ActivePrompts:
    """The prompts that a run starting now uses; at most half a second old."""
    return await _remembered.get()


def forget() -> None:
    """Let this process read again at once; called after an activation."""
    _remembered.forget()


def effective_system_message() -> str:
    """The same system message through the ORM, for pages of admin."""
    rows = Prompt.objects.filter(is_active=True, kind__in=_KINDS).values_list(
        "kind", "pk", "name", "active_version__pk", "active_version__number", "active_version__content"
    )
    return _made_of(rows).system


async def _read() -> ActivePrompts:
    async with connection() as held:
        cursor = await held.execute(_READ, [[kind.value for kind in _KINDS]])
        return _made_of(await cursor.fetchall())


def _made_of(rows: Iterable[tuple[Any, ...]]) -> ActivePrompts:
    ordered = sorted(rows, key=lambda row: _KINDS.index(row[0]))
    return ActivePrompts(
        system="\n\n".join(content for *_, content in ordered if content.strip()),
        versions=tuple(ActiveVersion(*facts) for *facts, _ in ordered),
    )


_remembered: Final = Remembered(_read, seconds=0.5)

"""Default data of an empty installation, so that the first run works without configuration.

Each part is created only if there is nothing of its kind: what staff edited, switched off or
replaced stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.db import transaction
from django.db.models import Q

from config import sql
from prompts.models import Endpoint, ModelMapping, Prompt, PromptKind, ProviderDialect
from prompts.wordings import staff_actions

_TEXTS: Final = Path(__file__).parent / "defaults"
_DESCRIPTIONS: Final = {
    PromptKind.AGENT_SYSTEM: "Who the agent is and how it answers.",
    PromptKind.AGENT_TOOLS: "How the agent treats tools and their results; follows the system prompt.",
}


@transaction.atomic
def seed() -> tuple[str, ...]:
    """Create what is missing, and return it for people; of processes that start together one does so."""
    sql.fetch("SELECT pg_advisory_xact_lock(hashtext('prompts.seed'))")
    return (*_seed_prompts(), *_seed_demo())


def _seed_prompts() -> Iterator[str]:
    for kind, description in _DESCRIPTIONS.items():
        if Prompt.objects.filter(Q(kind=kind) | Q(name=kind.value)).exists():
            continue
        prompt = Prompt.objects.create(name=kind.value, kind=kind, description=description)
        text = (_TEXTS / f"{kind.value}.md").read_text(encoding="utf-8").strip()
        version = staff_actions.save_version(prompt, text, author=None, note="Comes with Parley.")
        staff_actions.activate_version(version, by=None)
        yield f"prompt {prompt.name}"


def _seed_demo() -> Iterator[str]:
    if not Endpoint.objects.exists():
        Endpoint.objects.create(name="Offline demo", provider="demo", dialect=ProviderDialect.DEMO)
        yield "endpoint Offline demo"
    endpoint = Endpoint.objects.filter(dialect=ProviderDialect.DEMO).order_by("pk").first()
    if endpoint is not None and not ModelMapping.objects.exists():
        mapping = ModelMapping.objects.create(key="demo", label="Demo (offline)")
        mapping.candidates.create(endpoint=endpoint, model="demo-1")
        yield "model global:demo"

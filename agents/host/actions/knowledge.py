"""Knowledge for runners: searches in granted bases, by `agents.knowledge.retrieval`."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from agents.host.action_registry import action
from agents.host.actions.checks import checked_limit, checked_query
from agents.host.grants import Base
from agents.host.session import Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import not_found
from agents.knowledge import retrieval
from config import sql
from config.cache import CachedValue

_LONGEST: Final = 4_000
_BASES: Final = "SELECT id, name, embedding_model FROM agents_knowledgebase WHERE is_active LIMIT 1000"


@action("retrieve_knowledge_base", "knowledge_bases", "retrieve", resource="kb_id")
async def retrieve(session: Session, params: parameters.Retrieve) -> replies.Retrieved:
    """Return the chunks that fit best. `filters`: `document_name`, one or a list."""
    checked_query(params.query_text, _LONGEST, name="query_text")
    top_k = checked_limit(params.top_k, retrieval.MOST, name="top_k")
    base = next((one for one in await bases_in_use.get() if one.id.hex == params.kb_id), None)
    if base is None:
        raise not_found(f"Knowledge base {params.kb_id} not found")
    found = await retrieval.retrieve(
        base.id,
        params.query_text,
        top_k=top_k,
        documents=_documents(params.filters or {}),
        embedding_model=base.embedding_model,
    )
    return replies.Retrieved(tuple(found))


def _documents(filters: dict[str, Any]) -> frozenset[str]:
    names = filters.get("document_name")
    return frozenset(names if isinstance(names, list) else [names] if isinstance(names, str) else ())


async def _fetch_bases() -> list[Base]:
    return [Base(UUID(str(one)), name, model) for one, name, model in await sql.every(_BASES, ())]


bases_in_use: Final = CachedValue(_fetch_bases, seconds=0.5)
"""The active knowledge bases, at most half a second old."""

"""Vectors of texts: POST {base_url}/embeddings, as in OpenAI's API reference ("Create embeddings").

Vectors are optional: a base without an embedding model, or in a database without pgvector, is searched
by words alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct

from agents.providers import http
from agents.providers.base import ProviderError
from agents.providers.openai_chat import bearer_headers
from agents.providers.refusals import invalid_response_error
from config import sql
from config.cache import CachedValue
from config.errors import ParleyError
from prompts.endpoints import routing

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 64
_LARGEST: Final = 64 * 1024 * 1024
_HAS_VECTOR: Final = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector')"


class _Vector(Struct):
    embedding: list[float]
    index: int = 0


class _EmbeddingsReply(Struct):
    data: list[_Vector]


async def compute_vectors(model: str, texts: Sequence[str]) -> list[list[float]] | None:
    """Return a vector per text; log the error and return None if the model does not answer."""
    try:
        target = (await routing.route(model)).candidates[0]
        found: list[list[float]] = []
        for place in range(0, len(texts), _AT_ONCE):
            found += await _request(target, texts[place : place + _AT_ONCE])
    except (ProviderError, ParleyError) as problem:
        code = problem.code if isinstance(problem, ProviderError) else problem.error_code
        log.warning("no embeddings", model=model, reason=code)
        return None
    return found


async def _request(target: Any, texts: Sequence[str]) -> list[list[float]]:
    body = msgspec.json.encode({"model": target.model, "input": list(texts)})
    url = f"{target.base_url.rstrip('/')}/embeddings"
    response = await http.post(url, headers=bearer_headers(target.key), body=body)
    body_read = bytearray()
    try:
        async with aclosing(http.read(response)) as pieces:
            async for piece in pieces:
                body_read += piece
                if len(body_read) > _LARGEST:
                    raise invalid_response_error()
        answer = msgspec.json.decode(bytes(body_read), type=_EmbeddingsReply)
    except msgspec.MsgspecError:
        raise invalid_response_error() from None
    finally:
        response.close()
    ordered = sorted(answer.data, key=lambda one: one.index)
    if len(ordered) != len(texts) or not all(one.embedding for one in ordered):
        raise invalid_response_error()
    return [one.embedding for one in ordered]


async def _read_vector() -> bool:
    found = await sql.one(_HAS_VECTOR, ())
    return bool(found and found[0])


has_pgvector: Final = CachedValue(_read_vector, seconds=30)
"""Whether the database can compare vectors."""

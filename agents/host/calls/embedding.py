"""Vectors for runners, of the models that they are granted (`agents.knowledge.embeddings` calls them).

The tokens are not metered: only calls of chat models are.
"""

from __future__ import annotations

from typing import Final

from agents.host.actions import action
from agents.host.session import Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import HostRefusal, too_large
from agents.knowledge import embeddings

_MOST_TEXTS: Final = 512
_MOST_CHARACTERS: Final = 1024 * 1024


@action("invoke_embedding", "models", "invoke", resource="embedding_model_uuid", seconds=60)
async def embed(session: Session, params: parameters.Embed) -> replies.Embedded:
    """Return a vector per text, in order; raise HostRefusal `runtime_error` if there is none."""
    if len(params.texts) > _MOST_TEXTS or sum(map(len, params.texts)) > _MOST_CHARACTERS:
        raise too_large(
            f"At most {_MOST_TEXTS} texts, of {_MOST_CHARACTERS} characters together, are embedded."
        )
    found = await embeddings.compute_vectors(params.embedding_model_uuid, params.texts)
    if found is None:
        raise HostRefusal("runtime_error", "The model gives no embeddings now.", retryable=True)
    return replies.Embedded(tuple(found))

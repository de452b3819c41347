"""Addresses of OpenAI's API that are not here, each with why (docs/clients/openai-sdk.md)."""

from __future__ import annotations

from typing import Final

from config.errors import OPENAI_PATHS, NotFound

_ROOTS: Final = tuple(f"{base}v1/" if base != "/v1/" else base for base in OPENAI_PATHS)
_ABSENT: Final = {
    "responses/input_tokens": "Tokens are not counted before a run: only the model's provider can.",
    "responses/compact": "There is no compaction: a long conversation is shortened for the model here.",
    "conversations": "There is no Conversations API here: name one in `conversation` of a response.",
    "completions": "There are no legacy completions here: use /v1/responses or /v1/chat/completions.",
    "embeddings": "Embeddings are not offered here.",
    "files": "There are no files to upload here: send images and texts with the input.",
    "uploads": "There are no files to upload here: send images and texts with the input.",
    "vector_stores": "There are no vector stores here: staff keep the knowledge of an agent.",
    "images": "Images are not made here.",
    "audio": "Audio is not offered here.",
    "moderations": "Moderation is not offered here.",
    "batches": "Batches are not offered here: use `background`.",
    "fine_tuning": "Models are not trained here.",
    "evals": "Evaluations are not offered here.",
    "containers": "Containers are not offered here.",
    "realtime": "There is no Realtime API here: stream a response instead.",
    "assistants": "There is no Assistants API here: use /v1/responses.",
    "threads": "There is no Assistants API here: use /v1/responses.",
}


def absent(path: str) -> NotFound | None:
    """What to say of an address of OpenAI's that is not here; None for any other."""
    root = next((root for root in _ROOTS if path.startswith(root)), None)
    if root is None:
        return None
    rest = path.removeprefix(root)
    for begins, reason in _ABSENT.items():
        if rest == begins or rest.startswith(f"{begins}/"):
            return NotFound(reason, code="endpoint_not_supported")
    return None

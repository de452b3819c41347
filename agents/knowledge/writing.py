"""Store a document's chunks in place of its old ones; for admin and commands, because it blocks."""

from __future__ import annotations

from typing import Final

from django.db import connection, transaction

from agents.knowledge import embeddings
from agents.knowledge.chunks import chunks_of
from agents.models import KnowledgeChunk, KnowledgeDocument
from config import database

_AT_ONCE: Final = 500


def store_chunks(document: KnowledgeDocument) -> int:
    """Cut the document anew and return the number of chunks; they may lack vectors."""
    found = chunks_of(document.text)
    vectors: list[list[float]] | None = None
    if document.base.embedding_model:
        texts = [f"{one.heading}\n{one.text}" for one in found]
        vectors = database.run_sync(embeddings.compute_vectors(document.base.embedding_model, texts))
    made = [
        KnowledgeChunk(
            document=document,
            base_id=document.base_id,
            place=place,
            heading=one.heading,
            text=one.text,
            embedding=vectors[place - 1] if vectors else None,
        )
        for place, one in enumerate(found, 1)
    ]
    with transaction.atomic():
        document.chunks.all().delete()
        KnowledgeChunk.objects.bulk_create(made, batch_size=_AT_ONCE)
        KnowledgeDocument.objects.filter(pk=document.pk).update(chunk_count=len(made))
    return len(made)


def enable_pgvector() -> bool:
    """Create the extension if the role may; return whether the database can compare vectors."""
    with connection.cursor() as cursor:
        try:
            with transaction.atomic():
                cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except Exception:  # not installed, or not allowed for this role
            return False
    return True

"""Knowledge bases: documents that staff upload, cut into chunks that runners search.

The keys of a chunk (words, and pairs of characters of scripts without spaces) are made like those of
messages for search, with the base in the place of the owner. `embedding` is optional.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from agents.models.fields import optional_key, optional_text


class KnowledgeBase(models.Model):
    """A collection of documents, which bindings grant to runners by its name."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, unique=True)
    description = models.TextField(blank=True, default="")
    is_active = models.BooleanField(default=True)
    embedding_model = optional_text(
        "A model mapping whose first endpoint speaks OpenAI's /embeddings, for example "
        "global:embeddings: chunks are then also found by meaning. Empty: by words alone.",
        longest=200,
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class KnowledgeDocument(models.Model):
    """One uploaded text; its chunks are made again whenever it changes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="documents")
    name = models.CharField(max_length=200)
    mime_type = models.CharField(max_length=100, blank=True, default="text/plain")
    text = models.TextField()
    chunk_count = models.IntegerField(default=0, editable=False)
    uploaded_by = optional_key(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["base", "name"], name="one_document_per_name")
        ]

    def __str__(self) -> str:
        return self.name


class KnowledgeChunk(models.Model):
    """A piece of a document: the unit that a search finds and returns."""

    document = models.ForeignKey(KnowledgeDocument, on_delete=models.CASCADE, related_name="chunks")
    base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    place = models.IntegerField()
    heading = optional_text(longest=200)
    text = models.TextField()
    embedding = ArrayField(models.FloatField(), null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["document", "place"], name="one_chunk_per_place")
        ]

    def __str__(self) -> str:
        return f"{self.document_id} {self.place}"

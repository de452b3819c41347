"""Users and API tokens.

A user is local (created in admin, with a password) or belongs to an identity provider and is
identified by (issuer, subject). A token's text is shown once; only its SHA-256 is stored.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper


class User(AbstractUser):
    """An account, local or from an identity provider."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    issuer = models.CharField(max_length=500, null=True, blank=True, editable=False)
    subject = models.CharField(max_length=500, null=True, blank=True, editable=False)
    is_guest = models.BooleanField(default=False, help_text="An anonymous visitor of the client app.")
    namespace = models.UUIDField(
        db_default=RandomUUID(),
        editable=False,
        help_text="What the ids of the threads it names are made of; a secret, unlike its own id.",
    )
    named_by_id = models.BooleanField(
        db_default=False,
        editable=False,
        help_text="Threads that it named are made of its own id: it is older than its namespace.",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_per_identity"),
            models.CheckConstraint(
                condition=Q(issuer__isnull=True, subject__isnull=True)
                | Q(issuer__isnull=False, subject__isnull=False),
                name="identity_whole_or_none",
            ),
        ]
        indexes: ClassVar = [
            models.Index(OpClass(Upper("username"), "text_pattern_ops"), name="user_named_like"),
            models.Index(OpClass(Upper("email"), "text_pattern_ops"), name="user_addressed_like"),
            models.Index(fields=["subject"], condition=Q(subject__isnull=False), name="user_by_subject"),
        ]


class Scope(models.TextChoices):
    """The permitted use of a token."""

    RUN = "run", "Start, read and cancel runs"
    READ = "read", "Read runs and history"
    ADMIN = "admin", "Call the staff endpoints (if the user is staff)"


def default_scopes() -> list[str]:
    return [Scope.RUN, Scope.READ]


class ApiToken(models.Model):
    """A long-lived bearer token of one user; only its hash is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, help_text="What uses it, so that you know what to revoke.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=16, editable=False)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope), default=default_scopes)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

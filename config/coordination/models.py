"""What processes count together where there is no Redis: short-lived rows that a crash may lose.

Both tables are UNLOGGED: a write costs no wait for the disk, and after a crash of PostgreSQL they are
empty, as a Redis without persistence is.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class SharedCount(models.Model):
    """The use of one name in one window, by all processes."""

    pk = models.CompositePrimaryKey("name", "number")
    name = models.CharField(max_length=255)
    number = models.BigIntegerField()
    used = models.IntegerField()
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


class SharedSlot(models.Model):
    """One open stream, of whichever process; it expires unless its process renews it."""

    name = models.CharField(max_length=255, primary_key=True)
    user_id = models.UUIDField()
    thread_id = models.UUIDField()
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes: ClassVar = [models.Index("user_id", name="coordination_slots_of_user")]

    def __str__(self) -> str:
        return self.name

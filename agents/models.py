"""The exercise library: what the exercise tool searches (specs/text-run.md §3)."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class Exercise(models.Model):
    """One exercise; `id` is `off_` + md5(name)[:8], so an import of the same name updates it."""

    id = models.CharField(max_length=64, primary_key=True)
    name = models.CharField(max_length=200, unique=True)
    name_en = models.CharField(max_length=200, blank=True, default="")
    aliases = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    description = models.TextField(blank=True, default="")
    muscle_group = models.CharField(max_length=64)
    category = models.CharField(max_length=64)
    equipment = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    difficulty = models.CharField(max_length=32)
    target_muscles = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    secondary_muscles = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    default_sets = models.PositiveSmallIntegerField(null=True, blank=True)
    default_reps = models.PositiveSmallIntegerField(null=True, blank=True)
    steps = ArrayField(models.TextField(), default=list, blank=True)
    tips = ArrayField(models.TextField(), default=list, blank=True)
    tags = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    media = models.JSONField(default=dict, blank=True)
    source = models.CharField(max_length=64, default="OFFICIAL")
    is_custom = models.BooleanField(default=False)
    is_official = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return f"{self.name} / {self.name_en}" if self.name_en else self.name

"""The exercise library, which the exercise tool searches, and its versions (specs/text-run.md §3).

The values of the enumerations are those of the library's published schema. Clients receive them
unchanged in an ExerciseDto, so a new value is a change of the protocol.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from agents.models.fields import known_choice, optional_key, optional_text, text_list

_SETS = [MinValueValidator(1), MaxValueValidator(10)]
_REPS = [MinValueValidator(1), MaxValueValidator(100)]


class MuscleGroup(models.TextChoices):
    """A group of muscles that an exercise trains (LEGS), or one of its muscles (HAMSTRINGS)."""

    CHEST = "CHEST"
    BACK = "BACK"
    SHOULDERS = "SHOULDERS"
    ARMS = "ARMS"
    BICEPS = "BICEPS"
    TRICEPS = "TRICEPS"
    FOREARMS = "FOREARMS"
    LEGS = "LEGS"
    QUADRICEPS = "QUADRICEPS"
    HAMSTRINGS = "HAMSTRINGS"
    GLUTES = "GLUTES"
    CALVES = "CALVES"
    CORE = "CORE"
    ABS = "ABS"
    OBLIQUES = "OBLIQUES"
    LOWER_BACK = "LOWER_BACK"
    TRAPEZIUS = "TRAPEZIUS"
    FULL_BODY = "FULL_BODY"
    CARDIO = "CARDIO"
    OTHER = "OTHER"


class Category(models.TextChoices):
    """The part of a training programme that an exercise belongs to."""

    UPPER_BODY = "UPPER_BODY"
    LOWER_BODY = "LOWER_BODY"
    CORE = "CORE"
    FULL_BODY = "FULL_BODY"
    CARDIO = "CARDIO"
    FLEXIBILITY = "FLEXIBILITY"
    STRENGTH = "STRENGTH"
    OTHER = "OTHER"


class Equipment(models.TextChoices):
    """The equipment that an exercise needs; NONE is body weight alone."""

    NONE = "NONE"
    BARBELL = "BARBELL"
    DUMBBELL = "DUMBBELL"
    KETTLEBELL = "KETTLEBELL"
    CABLE = "CABLE"
    CABLES = "CABLES"
    MACHINE = "MACHINE"
    PULL_UP_BAR = "PULL_UP_BAR"
    PARALLEL_BARS = "PARALLEL_BARS"
    RESISTANCE_BAND = "RESISTANCE_BAND"
    MEDICINE_BALL = "MEDICINE_BALL"
    STABILITY_BALL = "STABILITY_BALL"
    FOAM_ROLLER = "FOAM_ROLLER"
    BENCH = "BENCH"
    SQUAT_RACK = "SQUAT_RACK"
    SMITH_MACHINE = "SMITH_MACHINE"
    LEG_PRESS = "LEG_PRESS"
    LAT_PULLDOWN = "LAT_PULLDOWN"
    ROWING_MACHINE = "ROWING_MACHINE"
    TREADMILL = "TREADMILL"
    STATIONARY_BIKE = "STATIONARY_BIKE"
    BIKE = "BIKE"
    ELLIPTICAL = "ELLIPTICAL"
    ROWER = "ROWER"
    SUSPENSION_TRAINER = "SUSPENSION_TRAINER"
    BATTLE_ROPES = "BATTLE_ROPES"
    BATTLE_ROPE = "BATTLE_ROPE"
    TRX = "TRX"
    PLYO_BOX = "PLYO_BOX"
    AGILITY_LADDER = "AGILITY_LADDER"
    BALANCE_BALL = "BALANCE_BALL"
    OTHER = "OTHER"


class Difficulty(models.TextChoices):
    """The experience that an exercise needs."""

    BEGINNER = "BEGINNER"
    NOVICE = "NOVICE"
    INTERMEDIATE = "INTERMEDIATE"
    ADVANCED = "ADVANCED"
    EXPERT = "EXPERT"


class Source(models.TextChoices):
    """The author of an exercise."""

    OFFICIAL = "OFFICIAL"
    USER_CUSTOM = "USER_CUSTOM"
    COMMUNITY_SHARED = "COMMUNITY_SHARED"
    AI_GENERATED = "AI_GENERATED"


class Exercise(models.Model):
    """One exercise; `id` is `official_id(name)` unless an import names another, and never changes."""

    id = models.CharField(max_length=64, primary_key=True, editable=False)
    name = models.CharField(max_length=200, unique=True)
    name_en = optional_text(longest=200, verbose_name="English name")
    aliases = text_list("Other names people use, in any language; the search knows them.")
    description = models.TextField(blank=True, default="")
    description_en = models.TextField("English description", blank=True, default="")
    muscle_group = models.CharField(max_length=64, choices=MuscleGroup)
    category = models.CharField(max_length=64, choices=Category)
    equipment = ArrayField(models.CharField(max_length=64, choices=Equipment), default=list, blank=True)
    difficulty = models.CharField(max_length=32, choices=Difficulty, default=Difficulty.BEGINNER)
    target_muscles = ArrayField(
        models.CharField(max_length=64, choices=MuscleGroup), default=list, blank=True
    )
    secondary_muscles = ArrayField(
        models.CharField(max_length=64, choices=MuscleGroup), default=list, blank=True
    )
    default_sets = models.PositiveSmallIntegerField(null=True, blank=True, validators=_SETS)
    default_reps = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=_REPS, help_text="Seconds or minutes where a tip says so."
    )
    steps = ArrayField(models.TextField(), default=list, blank=True)
    tips = ArrayField(models.TextField(), default=list, blank=True)
    tags = text_list(longest=64)
    media = models.JSONField(default=dict, blank=True)
    source = models.CharField(max_length=64, choices=Source, default=Source.OFFICIAL)
    is_custom = models.BooleanField(default=False)
    is_official = models.BooleanField(default=True)
    # From the same clock as updated_at, and earlier: no exercise changes before it exists.
    created_at = models.DateTimeField(default=timezone.now, db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            known_choice("muscle_group", MuscleGroup, name="exercise_muscle_group_known"),
            known_choice("category", Category, name="exercise_category_known"),
            known_choice("difficulty", Difficulty, name="exercise_difficulty_known"),
            known_choice("source", Source, name="exercise_source_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name} / {self.name_en}" if self.name_en else self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the exercise; a new one receives its id first, and a rename keeps the id."""
        self.id = self.id or _free_id(self.name)
        super().save(*args, **kwargs)


def official_id(name: str, *, digits: int = 8) -> str:
    """Return `off_` and the first hex digits of the name's MD5, eight in the published library."""
    return "off_" + hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:digits]


def _free_id(name: str) -> str:
    """Return the usual id, or a longer one if an exercise that had this name before has it."""
    usual = official_id(name)
    taken = Exercise.objects.filter(pk=usual).exists()
    return official_id(name, digits=32) if taken else usual


class LibraryVersion(models.Model):
    """One published state of the library; it never changes, and apps fetch it by its number.

    `content` is the gzipped JSON list of ExerciseDtos; `added`, `updated` and `deleted` are the ids that
    differ from the version before.
    """

    number = models.PositiveIntegerField(primary_key=True, editable=False)
    published_at = models.DateTimeField(editable=False)
    published_by = optional_key(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL)
    note = optional_text(longest=500)
    total = models.PositiveIntegerField(editable=False)
    checksum = models.CharField(max_length=71, editable=False)
    content = models.BinaryField(editable=False)
    added = ArrayField(models.CharField(max_length=64), default=list, editable=False)
    updated = ArrayField(models.CharField(max_length=64), default=list, editable=False)
    deleted = ArrayField(models.CharField(max_length=64), default=list, editable=False)

    class Meta:
        ordering: ClassVar = ["-number"]

    def __str__(self) -> str:
        return f"Library v{self.number}"

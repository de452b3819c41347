"""The tables of metrics: sums of hours and days, so that no chart reads runs; `metrics` writes them.

A latency is stored as a histogram: the columns `slots` and `counts`, of any hour, model or version,
which are merged by adding the counts of equal slots; `metrics.histograms` defines slots. Members are
stored as bits, so that users and conversations are counted exactly over any cells: `MemberSet`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class Grain(models.TextChoices):
    """The length of a bucket; weeks and months are added up from days.

    The other grains are days and hours in which all dimensions, or all but one, are added up and blank.
    """

    HOUR = "hour"
    DAY = "day"
    TOTAL = "dt", "day, all together"
    BY_MODEL = "dm", "day by model"
    BY_PROMPT = "dp", "day by prompt versions"
    BY_DIALECT = "dd", "day by dialect"
    BY_RUNNER = "dr", "day by runner"
    HOUR_TOTAL = "ht", "hour, all together"
    HOUR_BY_MODEL = "hm", "hour by model"
    HOUR_BY_PROMPT = "hp", "hour by prompt versions"
    HOUR_BY_DIALECT = "hd", "hour by dialect"
    HOUR_BY_RUNNER = "hr", "hour by runner"


def _many() -> models.BigIntegerField[Any, Any]:
    return models.BigIntegerField(db_default=0)


_DIMENSIONS: Final = ("model", "prompt_versions", "dialect", "runner")


class Cell(models.Model):
    """A cell of a bucket: one model, one set of prompt versions, one dialect, one runner."""

    grain = models.CharField(max_length=4, choices=Grain)
    bucket = models.DateTimeField(help_text="When the hour or day begins, in TIME_ZONE.")
    model = models.CharField(max_length=200)
    prompt_versions = ArrayField(models.IntegerField())
    dialect = models.CharField(max_length=32)
    runner = models.CharField(max_length=64)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.grain} of {self.bucket}"


class Rollup(Cell):
    """A cell with latencies."""

    slots = ArrayField(models.IntegerField())
    counts = ArrayField(models.IntegerField())

    class Meta(Cell.Meta):
        abstract = True


class RunRollup(Rollup):
    """The runs that were accepted in a bucket. The thousands of a slot give its measure."""

    pk = models.CompositePrimaryKey("grain", "bucket", *_DIMENSIONS)
    runs = _many()
    queued = _many()
    running = _many()
    completed = _many()
    failed = _many()
    cancelled = _many()
    timed_out = _many()
    conversations_begun = _many()
    input_tokens = _many()
    output_tokens = _many()
    cached_tokens = _many()
    reasoning_tokens = _many()
    cost_usd = models.DecimalField(max_digits=24, decimal_places=10, db_default=0)
    unpriced_tokens = _many()
    duration_ms = _many()
    queue_wait_ms = _many()
    first_token_ms = _many()
    speed = models.FloatField(db_default=0.0)
    reconnects = _many()
    feedback = _many()
    feedback_good = _many()
    feedback_bad = _many()
    errors = models.JSONField(db_default={})

    class Meta:
        db_table = "conversations_runrollup"


class StepRollup(Rollup):
    """The stages and tool calls of those runs."""

    pk = models.CompositePrimaryKey("grain", "bucket", "kind", "name", *_DIMENSIONS)
    kind = models.CharField(max_length=8, choices=[("stage", "stage"), ("tool", "tool")])
    name = models.TextField()
    calls = _many()
    succeeded = _many()
    total_ms = _many()

    class Meta:
        db_table = "conversations_steprollup"


BLOCK: Final = 2_048


class BitsField(models.Field):  # type: ignore[type-arg]
    """A column of `BLOCK` bits; only SQL reads and writes it."""

    def db_type(self, connection: Any) -> str:
        return f"bit({BLOCK})"


class MemberSet(Cell):
    """The members of a day's cell: one bit each, in blocks. `bit_or` unites sets, so members are counted
    over any days and cells; hours have no sets.
    """

    pk = models.CompositePrimaryKey("grain", "bucket", "kind", *_DIMENSIONS, "block")
    kind = models.CharField(max_length=12, choices=[("user", "user"), ("conversation", "conversation")])
    block = models.BigIntegerField(help_text="Which BLOCK ordinals.")
    bits = BitsField()

    class Meta:
        db_table = "conversations_memberset"


class Ordinal(models.Model):
    """The bit of a member; it is assigned at its first run, and never to another member."""

    ordinal = models.BigAutoField(primary_key=True)
    member = models.UUIDField(unique=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.ordinal}: {self.member}"


class UserOrdinal(Ordinal):
    """The ordinal of a user; a trigger deletes it with the user's last run."""

    class Meta:
        db_table = "conversations_userordinal"


class ThreadOrdinal(Ordinal):
    """The ordinal of a thread; a trigger deletes it with the thread's last run."""

    class Meta:
        db_table = "conversations_threadordinal"


class ThreadDay(models.Model):
    """The numbers of one thread on one day: the source of users' sums and of member sets."""

    pk = models.CompositePrimaryKey("day", "owner_id", "thread_id", *_DIMENSIONS)
    day = models.DateTimeField()
    owner_id = models.UUIDField()
    thread_id = models.UUIDField()
    model = models.CharField(max_length=200)
    prompt_versions = ArrayField(models.IntegerField())
    dialect = models.CharField(max_length=32)
    runner = models.CharField(max_length=64)
    runs = _many()
    completed = _many()
    failed = _many()
    cancelled = _many()
    input_tokens = _many()
    output_tokens = _many()
    cached_tokens = _many()
    cost_usd = models.DecimalField(max_digits=24, decimal_places=10, db_default=0)

    class Meta:
        db_table = "conversations_threadday"
        indexes: ClassVar = [models.Index(fields=["owner_id", "thread_id"], name="threadday_of_owner")]

    def __str__(self) -> str:
        return f"{self.thread_id} on {self.day}"


class VersionName(models.Model):
    """The readable name of a prompt version, taken from the runs that used it."""

    version_id = models.IntegerField(primary_key=True)
    kind = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    number = models.IntegerField()

    class Meta:
        db_table = "conversations_versionname"

    def __str__(self) -> str:
        return f"{self.name} v{self.number}"


class Reconnect(models.Model):
    """The number of readers that returned to a run; deleted with its run (ON DELETE CASCADE)."""

    run_id = models.UUIDField(primary_key=True)
    times = models.IntegerField()

    class Meta:
        db_table = "conversations_reconnect"

    def __str__(self) -> str:
        return f"{self.run_id}: {self.times}"


class StaleHour(models.Model):
    """An hour (of UTC) whose runs changed after it was rolled up, or will change: some are still live.

    Every change adds a mark; a mark that is added during the rollup keeps the hour stale.
    """

    at = models.DateTimeField(primary_key=True)
    marks = models.BigIntegerField(db_default=1)

    class Meta:
        db_table = "conversations_stalehour"

    def __str__(self) -> str:
        return self.at.isoformat()


class Metrics(models.Model):
    """The one row with the end of the rolled-up time and the time of the next round.

    Seeing any metric needs the permission `conversations.view_metrics`.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    rolled_until = models.DateTimeField(db_default=Now())
    next_at = models.DateTimeField(db_default=Now())
    time_zone = models.CharField(max_length=64)

    class Meta:
        default_permissions: ClassVar = ("view",)
        verbose_name_plural = "metrics"
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(id=1), name="metrics_in_one_row")
        ]

    def __str__(self) -> str:
        return "metrics"

"""Runners: bindings, the audit of their Host calls, what the Host keeps for them; knowledge bases."""

import uuid
from typing import ClassVar

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import agents.models.bindings

_TABLES = ("agents_hoststate", "agents_hostartifact")
_GOES_WITH = "".join(
    f"ALTER TABLE {table} ADD CONSTRAINT {table}_of_{name} FOREIGN KEY ({name}_id) "
    f"REFERENCES {other} (id) ON DELETE CASCADE;"
    for table in _TABLES
    for name, other in (("owner", "accounts_user"), ("thread", "conversations_thread"))
)
_STAYS = "".join(
    f"ALTER TABLE {table} DROP CONSTRAINT {table}_of_{name};"
    for table in _TABLES
    for name in ("owner", "thread")
)
_KEYS = """
ALTER TABLE agents_knowledgechunk ADD COLUMN keys tsvector
    GENERATED ALWAYS AS (conversations_tokens(base_id, heading || ' ' || text)) STORED;
CREATE INDEX knowledgechunk_keys ON agents_knowledgechunk USING gin (keys);
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0005_mcp_server"),
        ("conversations", "0008_interrupts"),
        ("prompts", "0005_prompt_deleted"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="KnowledgeBase",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                ("description", models.TextField(blank=True, default="")),
                ("is_active", models.BooleanField(default=True)),
                (
                    "embedding_model",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text=(
                            "A model mapping whose first endpoint speaks OpenAI's /embeddings, for "
                            "example global:embeddings: chunks are then also found by meaning. "
                            "Empty: by words alone."
                        ),
                        max_length=200,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="HostBlob",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "area",
                    models.CharField(
                        choices=[
                            ("plugin", "Plugin"),
                            ("workspace", "Workspace"),
                            ("binding", "Binding"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "holder",
                    models.CharField(
                        help_text="author/name, default, or the binding's id.", max_length=320
                    ),
                ),
                ("key", models.CharField(max_length=500)),
                ("content", models.BinaryField()),
                ("size", models.IntegerField()),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "verbose_name": "runner storage",
                "verbose_name_plural": "runner storage",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("area__in", ["plugin", "workspace", "binding"])),
                        name="hostblob_area_known",
                    ),
                    models.UniqueConstraint(fields=("area", "holder", "key"), name="one_blob_per_key"),
                ],
            },
        ),
        migrations.CreateModel(
            name="HostCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("run_id", models.UUIDField(null=True)),
                ("runner_id", models.CharField(max_length=320)),
                ("binding_id", models.IntegerField(null=True)),
                ("action", models.CharField(max_length=64)),
                ("resource", models.CharField(blank=True, max_length=200)),
                ("scope", models.CharField(blank=True, max_length=64)),
                ("result", models.CharField(help_text="ok, or the code of the refusal.", max_length=32)),
                ("elapsed_us", models.IntegerField(verbose_name="elapsed, µs")),
            ],
            options={
                "ordering": ["-at"],
                "indexes": [
                    models.Index(fields=["-at"], name="hostcall_by_time"),
                    models.Index(fields=["run_id"], name="hostcall_of_run"),
                ],
            },
        ),
        migrations.CreateModel(
            name="KnowledgeDocument",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("mime_type", models.CharField(blank=True, default="text/plain", max_length=100)),
                ("text", models.TextField()),
                ("chunk_count", models.IntegerField(default=0, editable=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="documents",
                        to="agents.knowledgebase",
                    ),
                ),
                (
                    "uploaded_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="KnowledgeChunk",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("place", models.IntegerField()),
                ("heading", models.CharField(blank=True, default="", max_length=200)),
                ("text", models.TextField()),
                (
                    "embedding",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), blank=True, null=True, size=None
                    ),
                ),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents.knowledgebase",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chunks",
                        to="agents.knowledgedocument",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RunnerBinding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                (
                    "runner_id",
                    models.CharField(
                        help_text=(
                            "For example python:echo or plugin:author/name/runner; the page Runners "
                            "lists them."
                        ),
                        max_length=320,
                        validators=[agents.models.bindings.is_runner_id],
                        verbose_name="runner",
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                (
                    "position",
                    models.PositiveIntegerField(
                        default=100,
                        help_text="Rules are tried from the lowest; the first that fits counts.",
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text=(
                            "Only runs that ask for this model, for example global:xai. Empty: any."
                        ),
                        max_length=200,
                    ),
                ),
                (
                    "dialect",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text=(
                            "Only runs asked for in this protocol: text, run-agent-input, ag-ui, "
                            "agent-api, responses or runner. Empty: any."
                        ),
                        max_length=32,
                    ),
                ),
                (
                    "thread_id",
                    models.UUIDField(
                        blank=True,
                        help_text="Only runs of this conversation.",
                        null=True,
                        verbose_name="conversation",
                    ),
                ),
                (
                    "config",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text=(
                            "What the runner's form asks for. Models, tools and knowledge bases "
                            "chosen here are granted, as far as the runner's own permissions go."
                        ),
                    ),
                ),
                (
                    "own_model",
                    models.BooleanField(
                        default=True,
                        help_text="The model that the client asked for.",
                        verbose_name="may ask the run's model",
                    ),
                ),
                (
                    "further_models",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        help_text="Further models that it may ask, by public name, one a line.",
                        size=None,
                    ),
                ),
                (
                    "tools",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        help_text=(
                            "Tools that it may call, one a line; * are all that the run's user is "
                            "granted."
                        ),
                        size=None,
                    ),
                ),
                (
                    "knowledge_bases",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        help_text="Knowledge bases that it may search, by name, one a line.",
                        size=None,
                    ),
                ),
                (
                    "storage",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16),
                        blank=True,
                        default=list,
                        help_text="Of plugin, workspace, binding: where it may keep bytes, one a line.",
                        size=None,
                    ),
                ),
                (
                    "platform_actions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        help_text=(
                            "Platform actions that it may request, one a line; each still needs its "
                            "tool policy's approval."
                        ),
                        size=None,
                    ),
                ),
                ("state_enabled", models.BooleanField(default=True, verbose_name="may keep state")),
                (
                    "state_scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16),
                        blank=True,
                        default=list,
                        help_text=(
                            "Of conversation, actor, subject, runner: whose state. Empty: all four."
                        ),
                        size=None,
                    ),
                ),
                (
                    "calls_per_minute",
                    models.PositiveIntegerField(
                        default=6000, help_text="Host calls of one run a minute; 0 is no limit."
                    ),
                ),
                (
                    "deadline_s",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Seconds for one run. Empty: as long as the run has.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(86400),
                        ],
                        verbose_name="deadline",
                    ),
                ),
                (
                    "delivery",
                    models.CharField(
                        choices=[("stream", "as it is said"), ("whole", "whole messages only")],
                        default="stream",
                        max_length=16,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "tier",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only runs of accounts of this tier and those above it.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="prompts.tier",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only this account's runs.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["position", "id"],
            },
        ),
        migrations.CreateModel(
            name="HostArtifact",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("runner_id", models.CharField(max_length=320)),
                ("artifact_type", models.CharField(max_length=64)),
                ("mime_type", models.CharField(max_length=127)),
                ("name", models.CharField(max_length=200)),
                ("size", models.IntegerField()),
                ("sha256", models.CharField(max_length=64)),
                ("content", models.BinaryField()),
                ("metadata", models.JSONField(default=dict)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="conversations.thread",
                    ),
                ),
            ],
            options={
                "verbose_name": "artifact",
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="artifact_expiring",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HostState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("runner_id", models.CharField(max_length=320)),
                ("binding_id", models.IntegerField(help_text="0 for runs without a binding.")),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("conversation", "Conversation"),
                            ("actor", "Actor"),
                            ("subject", "Subject"),
                            ("runner", "Runner"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "scope_key",
                    models.CharField(help_text="The conversation, actor or subject.", max_length=100),
                ),
                ("key", models.CharField(max_length=200)),
                ("value", models.JSONField(null=True)),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="conversations.thread",
                    ),
                ),
            ],
            options={
                "verbose_name": "runner state",
                "verbose_name_plural": "runner states",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("scope__in", ["conversation", "actor", "subject", "runner"])
                        ),
                        name="hoststate_scope_known",
                    ),
                    models.UniqueConstraint(
                        fields=("runner_id", "binding_id", "scope", "scope_key", "key"),
                        name="one_value_per_state_key",
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="knowledgedocument",
            constraint=models.UniqueConstraint(fields=("base", "name"), name="one_document_per_name"),
        ),
        migrations.AddConstraint(
            model_name="knowledgechunk",
            constraint=models.UniqueConstraint(fields=("document", "place"), name="one_chunk_per_place"),
        ),
        migrations.AddConstraint(
            model_name="runnerbinding",
            constraint=models.CheckConstraint(
                condition=models.Q(("delivery__in", ["stream", "whole"])), name="binding_delivery_known"
            ),
        ),
        migrations.RunSQL(_GOES_WITH, _STAYS),
        migrations.RunSQL(_KEYS, "ALTER TABLE agents_knowledgechunk DROP COLUMN keys"),
    ]

"""The audit log, which can only grow: the database refuses to change or delete an entry."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now

GUARD = """
CREATE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.actor_id IS NULL THEN
        OLD.actor_id := NULL;  -- the actor's account was deleted; the name stays
        IF NEW IS NOT DISTINCT FROM OLD THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit log only grows: entry % stays as it is', OLD.id
        USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE ON audit_auditentry
    FOR EACH ROW EXECUTE FUNCTION audit_only_grows();
"""
UNGUARD = """
DROP TRIGGER audit_only_grows ON audit_auditentry;
DROP FUNCTION audit_only_grows();
"""


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations: ClassVar = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(db_default=Now(), editable=False)),
                ("actor_name", models.CharField(max_length=150, verbose_name="who")),
                ("action", models.CharField(max_length=64)),
                ("object_type", models.CharField(max_length=100, verbose_name="kind of object")),
                ("object_id", models.CharField(max_length=64)),
                ("object_name", models.CharField(max_length=200, verbose_name="object")),
                ("before", models.JSONField(default=dict)),
                ("after", models.JSONField(default=dict)),
                ("request_id", models.CharField(blank=True, default="", max_length=128)),
                (
                    "actor",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit log",
                "indexes": [
                    models.Index(fields=["object_type", "object_id", "-id"], name="audit_of_object"),
                    models.Index(fields=["actor_name", "-id"], name="audit_of_actor"),
                    models.Index(fields=["action", "-id"], name="audit_of_action"),
                    models.Index(fields=["-at"], name="audit_by_time"),
                ],
            },
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]

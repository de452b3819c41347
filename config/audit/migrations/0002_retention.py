"""Entries may go once they are old: who deletes must say how many days are kept, and these are kept.

Without `parley.audit_days` in the transaction nothing can be deleted, as before. And two indexes for
the ids that staff search by.
"""

from typing import ClassVar

from django.db import migrations, models

_GUARD = """
CREATE OR REPLACE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept text := nullif(current_setting('parley.audit_days', true), '');
BEGIN
    IF TG_OP = 'DELETE' AND kept ~ '^[1-9][0-9]{0,4}$' THEN
        IF OLD.at < now() - make_interval(days => kept::integer) THEN
            RETURN OLD;
        END IF;
    END IF;
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
"""
_UNGUARD = """
CREATE OR REPLACE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.actor_id IS NULL THEN
        OLD.actor_id := NULL;
        IF NEW IS NOT DISTINCT FROM OLD THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit log only grows: entry % stays as it is', OLD.id
        USING ERRCODE = 'restrict_violation';
END
$$;
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("audit", "0001_initial")]

    operations: ClassVar = [
        migrations.RunSQL(_GUARD, _UNGUARD),
        migrations.AddIndex("auditentry", models.Index(fields=["object_id"], name="audit_of_object_id")),
        migrations.AddIndex(
            "auditentry",
            models.Index(
                fields=["request_id"], condition=~models.Q(request_id=""), name="audit_of_request"
            ),
        ),
    ]

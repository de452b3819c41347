"""The database refuses to change a published prompt version; only its author may be forgotten."""

from typing import ClassVar

from django.db import migrations

GUARD = """
CREATE FUNCTION prompts_version_never_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.author_id IS NULL THEN
        OLD.author_id := NULL;  -- the author's account was deleted
    END IF;
    IF NEW IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'version % of prompt % never changes: publish a new version',
            OLD.number, OLD.prompt_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER prompts_version_never_changes BEFORE UPDATE ON prompts_promptversion
    FOR EACH ROW EXECUTE FUNCTION prompts_version_never_changes();
"""
UNGUARD = """
DROP TRIGGER prompts_version_never_changes ON prompts_promptversion;
DROP FUNCTION prompts_version_never_changes();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("prompts", "0001_initial")]

    operations: ClassVar = [migrations.RunSQL(GUARD, UNGUARD)]

"""Counts and slots that processes share through PostgreSQL: unlogged, as none of them is a fact."""

from typing import ClassVar

from django.db import migrations, models

TABLES = ("coordination_sharedcount", "coordination_sharedslot")
UNLOGGED = [f"ALTER TABLE {table} SET UNLOGGED" for table in TABLES]
LOGGED = [f"ALTER TABLE {table} SET LOGGED" for table in TABLES]
# Each statement in it sees what was committed before the lock was taken: two processes that take the
# last slot at once do so one after the other. 18260 is the number of these locks.
TAKE = """
CREATE FUNCTION coordination_take_slot(
    slot text, of_user uuid, of_thread uuid, lives_s integer,
    most_of_user integer, most_of_thread integer, may_replace boolean,
    OUT is_full text, OUT replaced text
) LANGUAGE plpgsql AS $$
DECLARE
    used_by_user bigint;
    used_by_thread bigint;
    oldest text;
BEGIN
    is_full := '';
    replaced := '';
    PERFORM pg_advisory_xact_lock(18260, hashtext(of_user::text));
    DELETE FROM coordination_sharedslot WHERE user_id = of_user AND expires_at < clock_timestamp();
    SELECT count(*), count(*) FILTER (WHERE thread_id = of_thread),
        min(name COLLATE "C") FILTER (WHERE thread_id = of_thread)
    INTO used_by_user, used_by_thread, oldest
    FROM coordination_sharedslot WHERE user_id = of_user;
    IF most_of_user > 0 AND used_by_user >= most_of_user THEN
        is_full := 'user';
    ELSIF most_of_thread > 0 AND used_by_thread >= most_of_thread THEN
        is_full := 'conversation';
    END IF;
    IF is_full <> '' THEN
        IF NOT may_replace OR oldest IS NULL THEN
            RETURN;
        END IF;
        DELETE FROM coordination_sharedslot WHERE name = oldest;
        is_full := '';
        replaced := oldest;
    END IF;
    INSERT INTO coordination_sharedslot (name, user_id, thread_id, expires_at)
    VALUES (slot, of_user, of_thread, clock_timestamp() + make_interval(secs => lives_s));
END
$$
"""
UNTAKE = "DROP FUNCTION coordination_take_slot"


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar = []

    operations: ClassVar = [
        migrations.CreateModel(
            name="SharedCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "name", "number", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("number", models.BigIntegerField()),
                ("used", models.IntegerField()),
                ("expires_at", models.DateTimeField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="SharedSlot",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("user_id", models.UUIDField()),
                ("thread_id", models.UUIDField()),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index("user_id", name="coordination_slots_of_user")],
            },
        ),
        migrations.RunSQL(UNLOGGED, LOGGED),
        migrations.RunSQL(TAKE, UNTAKE),
    ]

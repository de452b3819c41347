"""A run that is not stored makes no fork for others: the next run goes on past it."""

from typing import ClassVar

from django.db import migrations

_FORK = """
LEFT JOIN LATERAL (
    SELECT earlier.thread_seq, earlier.id, earlier.continues_run_id FROM conversations_run earlier
    WHERE earlier.thread_id = run.thread_id AND earlier.continues_run_id IS NOT NULL
        AND (earlier.thread_seq, earlier.id) <= (run.thread_seq, run.id) {which}
    ORDER BY earlier.thread_seq DESC, earlier.id DESC LIMIT 1
) fork ON true
"""
_STRETCH = """
coalesce(fork.thread_seq, -1), coalesce(fork.id, '00000000-0000-0000-0000-000000000000'::uuid),
run.thread_seq, run.id, run.thread_id, fork.continues_run_id
"""
_BRANCH = """
CREATE OR REPLACE FUNCTION conversations_branch(tip uuid)
RETURNS TABLE (first_seq int, first_id uuid, last_seq int, last_id uuid)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 5 AS $$
    WITH RECURSIVE stretch (first_seq, first_id, last_seq, last_id, thread_id, before_id, forks) AS (
        SELECT {stretch}, 1 FROM conversations_run run {fork} WHERE run.id = tip
        UNION ALL
        SELECT {stretch}, stretch.forks + 1
        FROM stretch JOIN conversations_run run
            ON run.id = stretch.before_id AND run.thread_id = stretch.thread_id
        {fork} WHERE stretch.forks < 1000
    )
    SELECT first_seq, first_id, last_seq, last_id FROM stretch
$$;
"""


def _function(which: str) -> str:
    return _BRANCH.format(stretch=_STRETCH, fork=_FORK.format(which=which))


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0022_run_stored")]

    operations: ClassVar = [
        migrations.RunSQL(_function("AND (earlier.stored OR earlier.id = run.id)"), _function("")),
    ]

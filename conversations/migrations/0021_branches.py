"""Branches: which run a run goes on from, what a thread's newest run is, and the state after each run.

`conversations_branch(tip)` gives the branch that ends with a run, as stretches of the thread's order:
the runs between two places follow each other, and the first of a stretch goes on from the last of the
next. There is a step for each fork on the way, not for each run, and at most 1,000.
`conversations_in_branch` says whether one run stands in it.
"""

from typing import ClassVar

from django.db import migrations, models

_FORK = """
LEFT JOIN LATERAL (
    SELECT earlier.thread_seq, earlier.id, earlier.continues_run_id FROM conversations_run earlier
    WHERE earlier.thread_id = run.thread_id AND earlier.continues_run_id IS NOT NULL
        AND (earlier.thread_seq, earlier.id) <= (run.thread_seq, run.id)
    ORDER BY earlier.thread_seq DESC, earlier.id DESC LIMIT 1
) fork ON true
"""
_STRETCH = """
coalesce(fork.thread_seq, -1), coalesce(fork.id, '00000000-0000-0000-0000-000000000000'::uuid),
run.thread_seq, run.id, run.thread_id, fork.continues_run_id
"""
_FUNCTIONS = f"""
CREATE FUNCTION conversations_branch(tip uuid)
RETURNS TABLE (first_seq int, first_id uuid, last_seq int, last_id uuid)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 5 AS $$
    WITH RECURSIVE stretch (first_seq, first_id, last_seq, last_id, thread_id, before_id, forks) AS (
        SELECT {_STRETCH}, 1 FROM conversations_run run {_FORK} WHERE run.id = tip
        UNION ALL
        SELECT {_STRETCH}, stretch.forks + 1
        FROM stretch JOIN conversations_run run
            ON run.id = stretch.before_id AND run.thread_id = stretch.thread_id
        {_FORK} WHERE stretch.forks < 1000
    )
    SELECT first_seq, first_id, last_seq, last_id FROM stretch
$$;

CREATE FUNCTION conversations_in_branch(tip uuid, run_id uuid) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE COST 5000 AS $$
    SELECT EXISTS (
        SELECT FROM conversations_run run, conversations_run last, conversations_branch(tip) stretch
        WHERE run.id = run_id AND last.id = tip AND last.thread_id = run.thread_id
            AND (run.thread_seq, run.id) >= (stretch.first_seq, stretch.first_id)
            AND (run.thread_seq, run.id) <= (stretch.last_seq, stretch.last_id)
    )
$$;
"""
_DROP_FUNCTIONS = """
DROP FUNCTION conversations_in_branch(uuid, uuid);
DROP FUNCTION conversations_branch(uuid);
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0020_run_by_metadata")]

    operations: ClassVar = [
        migrations.AddField(
            "thread",
            "head_run_id",
            models.UUIDField(null=True, blank=True, editable=False, help_text="Its newest run."),
        ),
        migrations.AddField(
            "thread",
            "fork_run_id",
            models.UUIDField(
                null=True,
                blank=True,
                editable=False,
                help_text="The newest run that began a branch; none while there is one branch only.",
            ),
        ),
        migrations.AddField(
            "run",
            "continues_run_id",
            models.UUIDField(
                null=True,
                blank=True,
                editable=False,
                help_text="The run that it goes on from, where that is not the one before it in the "
                "thread; zeros where it begins the conversation anew.",
            ),
        ),
        migrations.AddField(
            "run",
            "state",
            models.JSONField(
                null=True, blank=True, editable=False, help_text="The thread's state after it."
            ),
        ),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["thread", "thread_seq"],
                condition=models.Q(continues_run_id__isnull=False),
                name="run_that_forks",
            ),
        ),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["continues_run_id"],
                condition=models.Q(continues_run_id__isnull=False),
                name="run_that_continues",
            ),
        ),
        migrations.RunSQL(_FUNCTIONS, _DROP_FUNCTIONS),
    ]

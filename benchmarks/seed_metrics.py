"""Half a million runs of ninety days by SQL: 1,000,000 messages, 10,000,000 events in folded rows.

Used by `benchmarks.metrics`; triggers and constraints sleep meanwhile, which needs a superuser.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

EVENTS_A_RUN: Final = 20
_DAYS: Final = 90
_USERS: Final = 2_000
_ID: Final = """(lpad(to_hex((extract(epoch FROM {at}) * 1000)::bigint), 12, '0') || '7'
    || substr(md5('{kind}' || i), 1, 3) || '8' || substr(md5('{kind}' || i), 4, 15))::uuid"""
_RUN: Final = _ID.format(at="at", kind="r")

# ten runs a conversation, five hundred conversations at a time: each lasts about a day
_PLAN: Final = f"""
CREATE TEMPORARY TABLE plan AS
SELECT i, at, {_RUN} AS run_id, md5('t' || thread)::uuid AS thread_id, thread,
    md5('u' || thread % {_USERS})::uuid AS owner_id, (i / 500) % 10 AS place,
    CASE WHEN i % 100 < 94 THEN 'completed' WHEN i % 100 < 98 THEN 'failed'
        ELSE 'cancelled' END AS status,
    'global:model-' || thread % 5 AS model, 100 + thread % 6 + (i * 10 / %(runs)s) * 6 AS version,
    (ARRAY['text', 'ag-ui', 'run-agent-input', 'responses'])[1 + thread % 4] AS dialect,
    (ARRAY['chat', 'demo'])[1 + (thread % 10 = 0)::int] AS runner,
    exp(7.5 + 1.1 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())) AS took
FROM (SELECT i, (i / 5000) * 500 + i % 500 AS thread,
        now() - interval '{_DAYS} days' + i * (interval '{_DAYS} days' / %(runs)s) AS at
    FROM generate_series(1, %(runs)s) i) numbered
"""
_STEPS: Final = (
    (
        "accounts",
        """
INSERT INTO accounts_user (id, username, password, first_name, last_name, email, is_staff, is_active,
    is_superuser, date_joined, is_guest)
SELECT DISTINCT owner_id, 'seed-' || owner_id, '!', '', '', '', false, true, false, now(), false
FROM plan
""",
    ),
    (
        "conversations",
        """
INSERT INTO conversations_thread (id, owner_id, title, last_seq, created_at, updated_at)
SELECT thread_id, min(owner_id::text)::uuid, 'About ' || min(thread), 2 * count(*), min(at), max(at)
FROM plan GROUP BY thread_id
""",
    ),
    (
        "runs",
        """
INSERT INTO conversations_run (id, owner_id, thread_id, thread_seq, request_id, dialect, model, runner,
    request, status, error_code, deadline_at, deadline_s, created_at, started_at, first_token_at,
    finished_at, prompt_versions, input_tokens, output_tokens, cached_tokens, cost_usd, folded, last_seq,
    provider, resolved_model)
SELECT run_id, owner_id, thread_id, place * 2 + 1, 'seed', dialect, model, runner, '{}', status,
    CASE status WHEN 'failed' THEN (ARRAY['provider_error', 'deadline_exceeded'])[1 + i % 2]
        WHEN 'cancelled' THEN 'cancelled' ELSE '' END,
    at + interval '10 minutes', 600, at, at + interval '1 ms' * (5 + took / 100),
    at + interval '1 ms' * (100 + took / 5), at + interval '1 ms' * (200 + took),
    jsonb_build_array(jsonb_build_object('kind', 'agent_system', 'prompt_id', 1, 'name', 'coach',
        'version_id', version, 'number', version - 99)),
    200 + i % 900, 50 + i % 400, i % 100, 0.0001 * (1 + i % 50), true, 20, 'openai', 'gpt-9'
FROM plan
""",
    ),
    (
        "messages of users",
        f"""
INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content, metadata,
    created_at)
SELECT {_ID.format(at="at", kind="m")}, owner_id, thread_id, run_id, place * 2 + 1, 'user',
    'What would help against a stiff back after sitting for ' || i % 12 || ' hours?',
    jsonb_build_object('run_id', replace(run_id::text, '-', '')), at
FROM plan
""",
    ),
    (
        "messages of assistants",
        f"""
INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content, metadata,
    created_at)
SELECT {_ID.format(at="at + interval '1 s'", kind="a")}, owner_id, thread_id, run_id, place * 2 + 2,
    CASE WHEN i % 8 = 0 THEN 'tool' ELSE 'assistant' END,
    repeat('Stand up every half hour and move your hips. ', 1 + i % 6),
    jsonb_build_object('run_id', replace(run_id::text, '-', ''), 'latency_ms', round(took)::int)
    || CASE WHEN i % 8 = 0 THEN jsonb_build_object('stage', 'tool_execution', 'tool_name',
            (ARRAY['gym.search', 'web.search', 'notes.add'])[1 + i % 3],
            'tool_agent_output', jsonb_build_object('ok', i % 20 <> 0))
        ELSE jsonb_build_object('stage', 'execution') END,
    at + interval '1 s'
FROM plan
""",
    ),
    (
        "events",
        """
INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
SELECT run_id, 1, 20, json_build_array(
    json_build_array(ms, json_build_object('type', 'run.queued', 'position', 1)),
    json_build_array(ms, json_build_object('type', 'run.started', 'attempt', 1, 'deadline_at', ms)),
    json_build_array(ms, json_build_object('type', 'model.routed', 'provider', 'openai',
        'model', 'gpt-9')),
    json_build_array(ms, json_build_object('type', 'message.deltas', 'message_id', 'm', 'texts',
        array_fill('word '::text, ARRAY[15]), 'later', array_fill(10, ARRAY[15]))),
    json_build_array(ms, json_build_object('type', 'message.completed', 'message', json_build_object(
        'message_id', 'm', 'role', 'assistant', 'content', 'word'))),
    json_build_array(ms, json_build_object('type', 'run.completed', 'finish_reason', 'stop')))
FROM (SELECT run_id, (extract(epoch FROM at) * 1000)::bigint AS ms FROM plan) timed
""",
    ),
    (
        "feedback",
        f"""
INSERT INTO conversations_feedback (id, run_id, user_id, score, comment, tags, created_at, updated_at)
SELECT {_ID.format(at="at", kind="f")}, run_id, owner_id, (ARRAY[1, 1, 1, -1, 0])[1 + i / 20 % 5], '',
    '{{}}', at, at
FROM plan WHERE i % 20 = 0
""",
    ),
)


def seed(runs: int, say: Callable[[str], None]) -> None:
    """Write the rows; two messages and twenty events a run."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SELECT setseed(0.5)")
        cursor.execute(_PLAN.replace("%(runs)s", str(int(runs))))
        for name, statement in _STEPS:
            since = time.monotonic()
            cursor.execute(statement)
            say(f"  {cursor.rowcount:,} rows of {name} in {time.monotonic() - since:.0f} s")
        cursor.execute("DROP TABLE plan")
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("VACUUM (ANALYZE)")

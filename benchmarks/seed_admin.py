"""The rest of a busy installation by SQL, beside `seed_metrics`: what admin's other lists show.

Accounts, tokens, the audit log, approvals, spending, quotas, Host calls and state, files, documents,
exercises, and one conversation of a thousand turns. Needs a superuser, as `seed_metrics` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LONG_THREAD: Final = "11111111-1111-4111-8111-111111111111"
_TURNS: Final = 1_000
_AT: Final = "now() - i * interval '1 minute'"
_MS: Final = f"(extract(epoch FROM {_AT}) * 1000)::bigint"
_UUID7: Final = """(lpad(to_hex({ms}), 12, '0') || '7' || substr(md5('{kind}' || i), 1, 3)
    || '8' || substr(md5('{kind}' || i), 4, 15))::uuid"""


def _uuid7(kind: str) -> str:
    return _UUID7.format(ms=_MS, kind=kind)


_SOME_USER: Final = "md5('u' || i % 2000)::uuid"

_STEPS: Final[tuple[tuple[str, int, str], ...]] = (
    (
        "more accounts",
        100_000,
        """
INSERT INTO accounts_user (id, username, password, first_name, last_name, email, is_staff, is_active,
    is_superuser, date_joined, is_guest, issuer, subject)
SELECT md5('g' || i)::uuid, 'person-' || i, '!', 'Ada', 'No ' || i, 'person-' || i || '@example.org',
    i % 5000 = 0, i % 50 <> 0, false, now(), i % 3 = 0, 'https://id.example.org', 'sub-' || i
""",
    ),
    (
        "tokens",
        20_000,
        f"""
INSERT INTO accounts_apitoken (user_id, name, digest, prefix, scopes, created_at, expires_at)
SELECT {_SOME_USER}, 'token ' || i, md5('d' || i) || md5('e' || i), 'pk_' || substr(md5('d' || i), 1, 8),
    ARRAY['run', 'read'], {_AT}, CASE WHEN i % 2 = 0 THEN now() + interval '30 days' END
""",
    ),
    (
        "audit entries",
        300_000,
        """
INSERT INTO audit_auditentry (at, actor_name, action, object_type, object_id, object_name, before, after,
    request_id)
SELECT now() - (300000 - i) * interval '5 minutes', 'staff-' || i % 40,
    (ARRAY['changed', 'added', 'deleted', 'activated', 'key replaced'])[1 + i % 5],
    (ARRAY['prompts.prompt', 'prompts.endpoint', 'accounts.user', 'prompts.budget'])[1 + i % 4],
    i % 500, 'thing ' || i % 500, '{"content": "as it was"}', '{"content": "as it is"}', 'r' || i
""",
    ),
    (
        "approvals",
        100_000,
        f"""
INSERT INTO conversations_interrupt (id, owner_id, thread_id, run_id, place, tool_call_id, tool_name,
    arguments, message, status, created_at, expires_at, decided_at)
SELECT {_uuid7("q")}, run.owner_id, run.thread_id, run.id, 1, 'call-' || i,
    (ARRAY['gym.search', 'web.search', 'notes.add'])[1 + i % 3], '{{"text": "milk"}}', '',
    CASE WHEN i % 50 = 0 THEN 'pending' WHEN i % 3 = 0 THEN 'refused' ELSE 'approved' END,
    {_AT}, now() + interval '1 day', CASE WHEN i % 50 <> 0 THEN now() END
FROM generate_series(1, {{rows}}) i JOIN (
    SELECT id, owner_id, thread_id, row_number() OVER () AS n FROM conversations_run LIMIT {{rows}}
) run ON run.n = i
""",
    ),
    (
        "spending",
        90 * 2_000 * 2,
        """
INSERT INTO conversations_spend (owner_id, day, shard, runs, input_tokens, output_tokens,
    unpriced_tokens, cost_usd)
SELECT md5('u' || (i / 180))::uuid, current_date - i % 90, i % 180 / 90, 3, 900 + i % 700, 300 + i % 200,
    CASE WHEN i % 10 = 0 THEN 40 ELSE 0 END, 0.0003 * (1 + i % 50)
""",
    ),
    (
        "days of all accounts' spending",
        90 * 8,
        """
INSERT INTO conversations_spend (owner_id, day, shard, runs, input_tokens, output_tokens,
    unpriced_tokens, cost_usd)
SELECT NULL, current_date - i % 90, i / 90, 1500, 300000, 100000, 0, 7.5
""",
    ),
    (
        "quotas used",
        50_000,
        """
INSERT INTO prompts_quotause (user_id, family, day, used)
SELECT md5('g' || i)::uuid, 'model-' || i % 5, current_date - i % 30, i % 60
""",
    ),
    (
        "Host calls",
        1_000_000,
        """
INSERT INTO agents_hostcall (at, run_id, runner_id, binding_id, action, resource, scope, result,
    elapsed_us)
SELECT now() - i * interval '7 seconds', md5('h' || i / 8)::uuid,
    'builtin:default/' || (ARRAY['coach', 'echo', 'notes'])[1 + i % 3], 1,
    (ARRAY['model.complete', 'tool.call', 'state.get', 'knowledge.search'])[1 + i % 4], '', 'run',
    CASE WHEN i % 40 = 0 THEN 'not_granted' ELSE 'ok' END, i % 5000
""",
    ),
    (
        "Host states",
        100_000,
        """
INSERT INTO agents_hoststate (runner_id, binding_id, scope, scope_key, key, value, updated_at)
SELECT 'builtin:default/coach', 1, 'conversation', md5('s' || i), 'notes', '{"n": 1}', now()
""",
    ),
    (
        "files of runners",
        20_000,
        f"""
INSERT INTO agents_hostartifact (id, run_id, runner_id, artifact_type, mime_type, name, size, sha256,
    content, metadata, created_at)
SELECT md5('f' || i)::uuid, md5('h' || i)::uuid, 'builtin:default/coach', 'report', 'text/plain',
    'report ' || i, 9, md5('c' || i) || md5('d' || i), 'some text', '{{}}', {_AT}
""",
    ),
)
_LONG: Final = f"""
WITH thread AS (
    INSERT INTO conversations_thread (id, owner_id, title, last_seq, created_at, updated_at)
    SELECT '{LONG_THREAD}', md5('u1')::uuid, 'A conversation of {_TURNS} turns', {2 * _TURNS},
        now() - interval '2 days', now()
), run AS (
    INSERT INTO conversations_run (id, owner_id, thread_id, thread_seq, request_id, dialect, model,
        runner, request, status, deadline_at, deadline_s, created_at, started_at, first_token_at,
        finished_at, prompt_versions, input_tokens, output_tokens, cost_usd, folded, last_seq, provider,
        resolved_model)
    SELECT {_uuid7("long")}, md5('u1')::uuid, '{LONG_THREAD}', 2 * ({_TURNS} - i) + 1,
        'seed', 'text', 'global:model-1', 'chat', '{{{{}}}}', 'completed', now(), 600, {_AT}, {_AT},
        {_AT}, {_AT},
        '[]', 200, 300, 0.001, true, 20, 'openai', 'gpt-9' FROM generate_series(0, {_TURNS} - 1) i
)
INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content, metadata,
    created_at)
SELECT {_uuid7("said").replace("|| i", "|| role || i")}, md5('u1')::uuid, '{LONG_THREAD}',
    {_uuid7("long")},
    2 * ({_TURNS} - i) + place, role, repeat('What would help against a stiff back? ', 20 * place),
    jsonb_build_object('run_id', i), {_AT}
FROM generate_series(0, {_TURNS} - 1) i, (VALUES ('user', 1), ('assistant', 2)) said(role, place)
"""


def seed(say: Callable[[str], None]) -> None:
    """Write the rows, after those of `seed_metrics`."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SET statement_timeout = 0")
        for name, rows, statement in _STEPS:
            since = time.monotonic()
            drawn = "" if "generate_series" in statement else "FROM generate_series(0, {rows} - 1) i"
            kept = " ON CONFLICT DO NOTHING"  # of the day's runs, if there were any
            cursor.execute((statement + drawn + kept).replace("{rows}", str(rows)))
            say(f"  {cursor.rowcount:,} {name} in {time.monotonic() - since:.0f} s")
        cursor.execute(_LONG.replace("{{}}", "{}"))
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("VACUUM (ANALYZE)")

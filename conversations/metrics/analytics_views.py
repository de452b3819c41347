"""The read-only views `analytics_*` for BI tools, described in docs/analytics/README.md.

A migration creates them. Only `analytics_contents` shows texts, and it is granted separately. A column
may be added at the end of a view; none may change its meaning.
"""

from __future__ import annotations

from typing import Final

from conversations.metrics.histograms import MEASURED, SHARES, STRIDE, middle_sql
from conversations.metrics.rollup_sql import VERSIONS

CONTENTS: Final = "analytics_contents"
_MS: Final = "greatest(0, round(extract(epoch FROM {} - run.created_at) * 1000))::bigint"
_COUNTS: Final = (
    *("runs", "queued", "running", "completed", "failed", "cancelled", "timed_out"),
    *("conversations_begun", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"),
    *("cost_usd", "unpriced_tokens", "reconnects", "feedback", "feedback_good", "feedback_bad"),
)
_SHARES: Final = ", ".join(
    f"{middle_sql(f'min(slot) FILTER (WHERE upto >= {share} * total)')} AS {name}"
    for name, share in SHARES.items()
)
_DIMENSIONS: Final = "model, prompt_versions, dialect, runner"  # of the migration that made them


def _ms(column: str) -> str:
    return f"CASE WHEN {column} IS NOT NULL THEN {_MS.format(column)} END"


def _runs() -> str:
    return f"""
    SELECT run.id AS run_id, run.created_at, run.thread_id AS conversation_id, run.owner_id AS user_id,
        run.status, run.error_code, run.finish_reason, run.model, run.resolved_model, run.provider,
        run.dialect, run.runner,
        {VERSIONS} AS prompt_versions,
        {_ms("run.started_at")} AS queue_wait_ms, {_ms("run.first_token_at")} AS first_token_ms,
        {_ms("run.finished_at")} AS duration_ms, run.input_tokens, run.output_tokens,
        run.cached_tokens, run.reasoning_tokens, run.cost_usd, run.unpriced_tokens,
        run.attempt, run.finished_at
    FROM conversations_run run"""


def _rolled(grain: str) -> str:
    return f"""
    SELECT bucket, {_DIMENSIONS}, {", ".join(_COUNTS)}, errors
    FROM conversations_runrollup WHERE grain = '{grain}'"""


def _latencies(grain: str) -> str:
    """Return percentiles of runs by bucket and model, merged over the other dimensions."""
    names = " ".join(f"WHEN {place} THEN '{name}'" for place, name in enumerate(MEASURED))
    return f"""
    SELECT bucket, model, CASE what {names} END AS measured, max(total)::bigint AS n, {_SHARES}
    FROM (SELECT bucket, model, what, slot, sum(n) OVER (PARTITION BY bucket, model, what ORDER BY slot)
            AS upto, sum(n) OVER (PARTITION BY bucket, model, what) AS total
        FROM (SELECT bucket, model, slot / {STRIDE} AS what, slot, sum(n) AS n
            FROM conversations_runrollup CROSS JOIN LATERAL unnest(slots, counts) part(slot, n)
            WHERE grain = '{grain}' GROUP BY bucket, model, slot) merged) ranked
    GROUP BY bucket, model, what"""


def _steps(kind: str) -> str:
    return f"""
    SELECT day, {kind}, max(calls)::bigint AS calls, max(succeeded)::bigint AS succeeded, {_SHARES}
    FROM (SELECT day, {kind}, slot, calls, succeeded,
            sum(n) OVER (PARTITION BY day, {kind} ORDER BY slot) AS upto,
            sum(n) OVER (PARTITION BY day, {kind}) AS total
        FROM (SELECT rolled.bucket AS day, rolled.name AS {kind}, slot, sum(n) AS n,
                sum(sum(n)) OVER (PARTITION BY rolled.bucket, rolled.name) AS calls,
                max(added.succeeded) AS succeeded
            FROM conversations_steprollup rolled CROSS JOIN LATERAL unnest(slots, counts) part(slot, n)
            JOIN (SELECT bucket, name, sum(succeeded) AS succeeded FROM conversations_steprollup
                WHERE grain = 'day' AND kind = '{kind}' GROUP BY bucket, name) added
                ON added.bucket = rolled.bucket AND added.name = rolled.name
            WHERE grain = 'day' AND kind = '{kind}'
            GROUP BY rolled.bucket, rolled.name, slot) merged) ranked
    GROUP BY day, {kind}"""


def views() -> dict[str, str]:
    """Return the query of each view by its name."""
    return {
        "analytics_runs": _runs(),
        "analytics_messages": """
    SELECT id AS message_id, created_at, run_id, thread_id AS conversation_id, owner_id AS user_id, seq,
        role, stage, tool_name, tool_ok = 'true' AS ok, latency_ms, char_length(content) AS characters
    FROM conversations_message""",
        "analytics_tool_calls": """
    SELECT id AS message_id, created_at, run_id, owner_id AS user_id, tool_name, tool_ok = 'true' AS ok,
        latency_ms
    FROM conversations_message WHERE tool_name IS NOT NULL AND tool_ok IS NOT NULL""",
        "analytics_conversations": """
    SELECT id AS conversation_id, owner_id AS user_id, created_at, updated_at, last_seq AS messages,
        archived_at IS NOT NULL AS archived
    FROM conversations_thread""",
        "analytics_users": """
    SELECT id AS user_id, date_joined, last_login, is_guest, is_staff, is_active FROM accounts_user""",
        "analytics_feedback": """
    SELECT run_id, user_id, score, tags, created_at, updated_at FROM conversations_feedback""",
        "analytics_prompt_versions": """
    SELECT version_id, kind, name, number FROM conversations_versionname""",
        "analytics_hours": _rolled("hour"),
        "analytics_days": _rolled("day"),
        "analytics_latency_hours": _latencies("hour"),
        "analytics_latency_days": _latencies("day"),
        "analytics_stage_days": _steps("stage"),
        "analytics_tool_days": _steps("tool"),
        "analytics_active_users": """
    SELECT day, count(DISTINCT owner_id) AS users, count(DISTINCT thread_id) AS conversations,
        sum(runs)::bigint AS runs
    FROM conversations_threadday GROUP BY day""",
        CONTENTS: """
    SELECT message.id AS message_id, message.created_at, message.run_id, message.role, message.content,
        NULL::text AS comment
    FROM conversations_message message
    UNION ALL
    SELECT feedback.id, feedback.updated_at, feedback.run_id, 'feedback', NULL, feedback.comment
    FROM conversations_feedback feedback""",
    }


def create_sql() -> str:
    """Return the SQL that creates every view."""
    return ";\n".join(f"CREATE VIEW {name} AS {query}" for name, query in views().items())


def drop_sql() -> str:
    """Return the SQL that drops every view."""
    return f"DROP VIEW IF EXISTS {', '.join(views())}"

"""The usage of the last minutes or days, counted from the runs by one pass over `run_by_time`."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from django.db import connection, transaction

_RUNS: Final = """
WITH parts AS MATERIALIZED (
    SELECT model, endpoint_id, owner_id, count(*) AS total,
        count(*) FILTER (WHERE status = 'completed') AS success,
        count(*) FILTER (WHERE status = 'failed') AS error,
        sum(extract(epoch FROM finished_at - created_at)::float8)
            FILTER (WHERE status = 'completed') AS spent,
        sum(input_tokens) + sum(output_tokens) AS tokens, max(finished_at) AS last_at
    FROM conversations_run
    WHERE created_at > statement_timestamp() - make_interval(secs => %s)
        AND created_at <= statement_timestamp()
    GROUP BY model, endpoint_id, owner_id
)
SELECT grouping(model, endpoint_id), model, endpoint_id, coalesce(sum(total), 0)::bigint,
    coalesce(sum(success), 0)::bigint, coalesce(sum(error), 0)::bigint, count(DISTINCT owner_id),
    coalesce(sum(spent), 0), coalesce(sum(tokens), 0)::bigint, max(last_at)
FROM parts GROUP BY GROUPING SETS ((), (model), (endpoint_id))
"""
_ALL, _OF_MODEL, _OF_ENDPOINT = 3, 1, 2  # what `grouping` says of a row


class UsageSums(NamedTuple):
    """The sums over the runs of a window, or over those of one model or endpoint in it."""

    total: int = 0
    success: int = 0
    error: int = 0
    users: int = 0
    spent_s: float = 0.0
    tokens: int = 0
    last_at: datetime | None = None

    @property
    def latency_ms(self) -> float:
        """Return the mean time from acceptance to the end, of completed runs."""
        return round(self.spent_s * 1000 / self.success, 2) if self.success else 0.0

    @property
    def success_rate(self) -> float:
        """Return the percentage of completed runs among completed and failed ones."""
        return percent(self.success, self.success + self.error)


class RecentUsage(NamedTuple):
    whole: UsageSums
    models: dict[str, UsageSums]
    endpoints: dict[int, UsageSums]


def fetch_recent_usage(seconds: int) -> RecentUsage:
    """Return the usage of the runs that were created in the last `seconds`."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL work_mem = '32MB'"
        )  # a week's groups by hashing, not by sorting on disk
        cursor.execute(_RUNS, [seconds])
        rows = cursor.fetchall()
    whole, models, endpoints = UsageSums(), dict[str, UsageSums](), dict[int, UsageSums]()
    for kind, model, endpoint_id, *numbers in rows:
        used = UsageSums(*numbers)
        if kind == _ALL:
            whole = used
        elif kind == _OF_MODEL:
            models[model] = used
        elif endpoint_id is not None:
            endpoints[endpoint_id] = used
    return RecentUsage(whole, models, endpoints)


def percent(part: int, whole: int) -> float:
    """Return the part in percent of the whole; 0 if the whole is 0."""
    return round(100 * part / whole, 2) if whole else 0.0

"""What the search index costs those who write: a run's two messages with it and without it.

    .venv/bin/python -m benchmarks.search_writes [RUNS]

A row each for RUNS (2,000) questions and answers, half Chinese and half English, a statement each, in
turns with the index and without it on tables of their own; then merging what the index has noted.
"""

from __future__ import annotations

import statistics
import sys
import time
from uuid import uuid4

from django.db import connection

from benchmarks.scratch import scratch_database
from benchmarks.words import Writer

_TABLES = """
CREATE TABLE {name} (LIKE conversations_message INCLUDING DEFAULTS INCLUDING GENERATED);
ALTER TABLE {name} ADD PRIMARY KEY (id);
CREATE INDEX ON {name} (thread_id, seq);
CREATE INDEX ON {name} (thread_id, created_at);
CREATE INDEX ON {name} (run_id);
"""
_BY_OWNER = "CREATE INDEX ON noted (owner_id, created_at) WHERE role IN ('user', 'assistant')"
_TOKENS = """
CREATE INDEX noted_tokens ON noted USING gin (conversations_tokens(owner_id, content))
WITH (fastupdate = on, gin_pending_list_limit = 65536) WHERE role IN ('user', 'assistant')
"""
_INSERT = """
INSERT INTO {name} (id, owner_id, thread_id, run_id, seq, role, content, metadata)
VALUES (%s, %s, %s, %s, 1, %s, %s, '{{}}')
"""


def main(runs: int) -> None:
    writer, owners = Writer(3), [uuid4() for _ in range(50)]
    took: dict[tuple[str, str], list[float]] = {}
    with connection.cursor() as cursor:
        for name in ("plain", "noted"):
            cursor.execute(_TABLES.format(name=name))
        cursor.execute(_BY_OWNER)
        cursor.execute(_TOKENS)
        for number in range(runs):
            language = "zh" if number % 2 else "en"
            for role, words in (("user", 12), ("assistant", 60)):
                content = writer.text(language, words)
                for name in ("plain", "noted"):
                    row = (uuid4(), owners[number % 50], uuid4(), uuid4(), role, content)
                    since = time.perf_counter()
                    cursor.execute(_INSERT.format(name=name), row)
                    took.setdefault((name, role), []).append(time.perf_counter() - since)
        since = time.perf_counter()
        cursor.execute("SELECT gin_clean_pending_list('noted_tokens')")
        merging = time.perf_counter() - since
        cursor.execute("SELECT pg_relation_size('noted_tokens'), sum(octet_length(content)) FROM noted")
        index, content_bytes = cursor.fetchone()
    for (name, role), each in took.items():
        ordered = sorted(each)
        p99 = ordered[len(ordered) * 99 // 100]
        print(
            f"{name:<6} {role:<10} p50 {statistics.median(each) * 1e6:6.0f} µs, p99 {p99 * 1e6:6.0f} µs"
        )
    print(f"merging: {merging / runs * 1e6:.0f} µs a run; index {index / runs:.0f} bytes a run")
    print(f"content: {content_bytes / runs:.0f} bytes a run")


if __name__ == "__main__":
    with scratch_database():
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)

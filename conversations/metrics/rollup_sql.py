"""The SQL of the rollups: runs to hours, hours to days, runs to days of threads, those to member sets.

Each statement computes the rows of a range and replaces the table's rows in it; equal rows stay as they
are, so repeating a statement changes nothing. Every measure has its line in `RUN_MEASURES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from conversations.metrics.dimensions import CELL, DIMENSIONS
from conversations.metrics.histograms import STRIDE, slot_sql
from conversations.models.rollups import BLOCK

# column → (what it is of `measured_runs`, in SQL)
RUN_MEASURES: Final = {
    "runs": "count(*)",
    "queued": "count(*) FILTER (WHERE status = 'queued')",
    "running": "count(*) FILTER (WHERE status = 'running')",
    "completed": "count(*) FILTER (WHERE status = 'completed')",
    "failed": "count(*) FILTER (WHERE status = 'failed')",
    "cancelled": "count(*) FILTER (WHERE status = 'cancelled')",
    "timed_out": "count(*) FILTER (WHERE error_code IN ('deadline_exceeded', 'queue_timeout'))",
    "conversations_begun": "count(*) FILTER (WHERE thread_seq = 1)",
    "input_tokens": "sum(input_tokens)",
    "output_tokens": "sum(output_tokens)",
    "cached_tokens": "sum(cached_tokens)",
    "reasoning_tokens": "sum(reasoning_tokens)",
    "cost_usd": "coalesce(sum(cost_usd), 0)",
    "unpriced_tokens": "sum(unpriced_tokens)",
    "duration_ms": "coalesce(sum(duration_ms), 0)::bigint",
    "queue_wait_ms": "coalesce(sum(queue_wait_ms), 0)::bigint",
    "first_token_ms": "coalesce(sum(first_token_ms), 0)::bigint",
    "speed": "coalesce(sum(tokens_per_s), 0)",
    "reconnects": "coalesce(sum(reconnects), 0)",
    "feedback": "count(score)",
    "feedback_good": "count(*) FILTER (WHERE score > 0)",
    "feedback_bad": "count(*) FILTER (WHERE score < 0)",
}
STEP_MEASURES: Final = ("calls", "succeeded", "total_ms")
THREAD_MEASURES: Final = (
    "runs",
    "completed",
    "failed",
    "cancelled",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost_usd",
)
MS: Final = """CASE WHEN {0} IS NOT NULL
            THEN greatest(0, round(extract(epoch FROM {0} - run.created_at) * 1000))::float8 END"""
VERSIONS: Final = """ARRAY(SELECT one::int FROM jsonb_array_elements_text(jsonb_path_query_array(
            run.prompt_versions, '$[*].version_id ? (@.type() == "number")')) one ORDER BY 1)"""


def measured_runs(where: str) -> str:
    """Return the runs of a range with the measures of each; `where` refers to `run`."""
    return f"""
    SELECT run.id, run.thread_id, run.owner_id, run.created_at, run.model, run.dialect, run.runner,
        {VERSIONS} AS prompt_versions,
        run.thread_seq, run.status, run.error_code, run.input_tokens, run.output_tokens,
        run.cached_tokens, run.reasoning_tokens, run.cost_usd, run.unpriced_tokens,
        CASE WHEN run.status = 'completed' THEN {MS.format("run.finished_at")} END AS duration_ms,
        {MS.format("run.started_at")} AS queue_wait_ms,
        {MS.format("run.first_token_at")} AS first_token_ms,
        CASE WHEN run.status = 'completed' AND run.output_tokens > 0
            AND run.finished_at > run.first_token_at
            THEN run.output_tokens / extract(epoch FROM run.finished_at - run.first_token_at)::float8
            END AS tokens_per_s,
        again.times AS reconnects, judged.score
    FROM conversations_run run
    LEFT JOIN conversations_reconnect again ON again.run_id = run.id
    LEFT JOIN conversations_feedback judged
        ON judged.run_id = run.id AND judged.user_id = run.owner_id
    WHERE {where}"""


def run_cells(source: str, bucket: str) -> str:
    """Return rows of `RunRollup` (without grain) from the runs of `source`; `bucket` is SQL on a run."""
    key = "bucket, model, prompt_versions, dialect, runner"
    measures = ", ".join(f"{sql} AS {name}" for name, sql in RUN_MEASURES.items())
    values = f"""(VALUES (0, duration_ms), ({STRIDE}, queue_wait_ms), ({2 * STRIDE}, first_token_ms),
            ({3 * STRIDE}, tokens_per_s)) measured(base, value)"""
    return f"""
    WITH ran AS MATERIALIZED (SELECT {bucket} AS bucket, source.* FROM ({source}) source),
    facts AS (SELECT {key}, {measures} FROM ran GROUP BY {key}),
    slots AS (
        SELECT {key}, array_agg(slot ORDER BY slot) AS slots, array_agg(n ORDER BY slot) AS counts
        FROM (SELECT {key}, base + {slot_sql("value")} AS slot, count(*)::int AS n
            FROM ran CROSS JOIN LATERAL {values} WHERE value IS NOT NULL GROUP BY {key}, slot) part
        GROUP BY {key}),
    codes AS (
        SELECT {key}, jsonb_object_agg(error_code, n) AS errors
        FROM (SELECT {key}, error_code, count(*) AS n FROM ran WHERE status = 'failed'
            GROUP BY {key}, error_code) part
        GROUP BY {key})
    SELECT {key}, {", ".join(RUN_MEASURES)},
        coalesce(slots, '{{}}') AS slots, coalesce(counts, '{{}}') AS counts,
        coalesce(errors, '{{}}') AS errors
    FROM facts LEFT JOIN slots USING ({key}) LEFT JOIN codes USING ({key})"""


def step_cells(bucket: str, *, where: str = "") -> str:
    """Return rows of `StepRollup` (without grain) from the messages of the runs of a range.

    A stage counts once per run, whatever the number of its messages; every tool call counts.
    """
    key = "bucket, kind, name, model, prompt_versions, dialect, runner"
    return f"""
    WITH ran AS MATERIALIZED (
        SELECT {bucket} AS bucket, id, model, dialect, runner, {VERSIONS} AS prompt_versions
        FROM conversations_run run
        WHERE run.created_at >= %(begin)s AND run.created_at < %(end)s {where}),
    noted AS MATERIALIZED (
        SELECT ran.*, message.stage, message.tool_name, message.tool_ok = 'true' AS ok,
            coalesce(message.latency_ms, 0) AS ms
        FROM ran JOIN conversations_message message ON message.run_id = ran.id
        WHERE message.stage IS NOT NULL AND (message.role IN ('assistant', 'activity')
            OR message.role = 'tool' AND message.tool_ok IS NOT NULL)),
    steps AS (
        SELECT bucket, 'tool' AS kind, tool_name AS name, model, prompt_versions, dialect, runner, ms, ok
        FROM noted WHERE tool_name IS NOT NULL AND ok IS NOT NULL
        UNION ALL
        SELECT bucket, 'stage', stage, model, prompt_versions, dialect, runner, ms, coalesce(ok, true)
        FROM noted WHERE stage = 'tool_execution'
        UNION ALL
        SELECT bucket, 'stage', stage, model, prompt_versions, dialect, runner, max(ms), true
        FROM noted WHERE stage <> 'tool_execution'
        GROUP BY id, bucket, stage, model, prompt_versions, dialect, runner),
    facts AS (
        SELECT {key}, count(*) AS calls, count(*) FILTER (WHERE ok) AS succeeded, sum(ms) AS total_ms
        FROM steps GROUP BY {key}),
    slots AS (
        SELECT {key}, array_agg(slot ORDER BY slot) AS slots, array_agg(n ORDER BY slot) AS counts
        FROM (SELECT {key}, {slot_sql("ms")} AS slot, count(*)::int AS n FROM steps
            GROUP BY {key}, slot) part
        GROUP BY {key})
    SELECT {key}, calls, succeeded, total_ms, slots, counts FROM facts JOIN slots USING ({key})"""


# --- days of days -------------------------------------------------------------------------------

# A day, and an hour of runs, is kept also with all but one dimension added up, or all: what most charts
# ask for.
_KEPT: Final = {"t": ()} | {one.grain: (one.column,) for one in DIMENSIONS}
CUTS: Final = {f"d{letter}": kept for letter, kept in _KEPT.items()}
HOUR_CUTS: Final = {f"h{letter}": kept for letter, kept in _KEPT.items()}


def grain_for(unit: str, names: set[str]) -> str:
    """Return the grain of days or hours that keeps these dimensions, and as few others as possible."""
    return next((unit[0] + letter for letter, kept in _KEPT.items() if names == set(kept)), unit)


def merged_cells(
    table: RollupTable,
    *,
    of: str,
    kept: tuple[str, ...] = CELL,
    into: str = "%(begin)s::timestamptz",
) -> str:
    """Return the cells of grain `of`, added up to buckets that begin `into`, by steps and the
    dimensions `kept`: sums, and histograms slot by slot.
    """
    key = (*table.steps, *kept)
    by = ", ".join(("begins", *key))
    sums = ", ".join(f"sum({name}) AS {name}" for name in table.measures)
    errors = "errors" in table.values
    codes = f"""
    , codes AS (
        SELECT {by}, jsonb_object_agg(code, n) AS errors
        FROM (SELECT {by}, code, sum(times::bigint) AS n
            FROM parts CROSS JOIN LATERAL jsonb_each_text(errors) part(code, times)
            GROUP BY {by}, code) part
        GROUP BY {by})"""
    return f"""
    WITH parts AS MATERIALIZED (
        SELECT {into} AS begins, kept.* FROM {table.name} kept
        WHERE grain = '{of}' AND bucket >= %(begin)s AND bucket < %(end)s),
    facts AS (SELECT {by}, {sums} FROM parts GROUP BY {by}),
    slots AS (
        SELECT {by}, array_agg(slot ORDER BY slot) AS slots, array_agg(n ORDER BY slot) AS counts
        FROM (SELECT {by}, slot, sum(n)::int AS n
            FROM parts CROSS JOIN LATERAL unnest(slots, counts) part(slot, n) GROUP BY {by}, slot) part
        GROUP BY {by}){codes if errors else ""}
    SELECT begins AS bucket, {", ".join((*key, *_blanks(kept), *table.measures))},
        coalesce(slots, '{{}}') AS slots, coalesce(counts, '{{}}') AS counts
        {", coalesce(errors, '{}') AS errors" if errors else ""}
    FROM facts LEFT JOIN slots USING ({by}) {f"LEFT JOIN codes USING ({by})" if errors else ""}"""


def _blanks(kept: tuple[str, ...]) -> list[str]:
    """Return the dimensions that are added up, as blank columns."""
    return [f"{one.blank} AS {one.column}" for one in DIMENSIONS if one.column not in kept]


# --- who took part ------------------------------------------------------------------------------


def thread_days(source: str) -> str:
    """Return rows of `ThreadDay` of one day, from the runs of `source`."""
    measures = ", ".join(f"{RUN_MEASURES[name]} AS {name}" for name in THREAD_MEASURES)
    key = "owner_id, thread_id, model, prompt_versions, dialect, runner"
    return f"""
    SELECT %(begin)s::timestamptz AS day, {key}, {measures} FROM ({source}) ran GROUP BY {key}"""


MEMBERS: Final = {
    "user": ("owner_id", "conversations_userordinal"),
    "conversation": ("thread_id", "conversations_threadordinal"),
}


def number_members(kind: str) -> str:
    """Assign an ordinal to each member of a day without one; not by two processes at once."""
    member, ordinals = MEMBERS[kind]
    return f"""
    INSERT INTO {ordinals} (member) SELECT DISTINCT {member} FROM conversations_threadday
    WHERE day = %(begin)s AND NOT EXISTS (SELECT FROM {ordinals} WHERE member = {member})"""


def members_of(source: str, at: str) -> str:
    """Return (`at`, kind, cell, block, bits) per member and cell of `source`, with repetitions; without
    members that have no ordinal yet, and without runs that are not added up yet.
    """
    cell = ", ".join(CELL)
    each = " UNION ALL ".join(
        f"""
        SELECT {at}, '{kind}' AS kind, {cell}, ordinal / {BLOCK} AS block,
            set_bit(B'0'::bit({BLOCK}), mod(ordinal, {BLOCK})::int, 1) AS bits
        FROM part JOIN {ordinals} ON member = {column}"""
        for kind, (column, ordinals) in MEMBERS.items()
    )
    return f"WITH part AS MATERIALIZED ({source}) {each}"


def member_sets() -> str:
    """Return rows of `MemberSet` (without grain) of one day, from its `ThreadDay`s."""
    day = "SELECT day AS bucket, kept.* FROM conversations_threadday kept WHERE day = %(begin)s"
    return _join_sets(members_of(day, "bucket"), CELL)


def merged_members(kept: tuple[str, ...]) -> str:
    """Return the same with all dimensions except `kept` added up."""
    day = """SELECT * FROM conversations_memberset
        WHERE grain = 'day' AND bucket >= %(begin)s AND bucket < %(end)s"""
    return _join_sets(day, kept)


def _join_sets(source: str, kept: tuple[str, ...]) -> str:
    by = ", ".join(("bucket", "kind", *kept, "block"))
    columns = ", ".join(("bucket", "kind", *kept, *_blanks(kept), "block"))
    return f"SELECT {columns}, bit_or(bits) AS bits FROM ({source}) part GROUP BY {by}"


# --- how a table is brought to it ---------------------------------------------------------------


def replace_rows(
    table: str, fresh: str, *, key: tuple[str, ...], values: tuple[str, ...], where: str
) -> str:
    """Return a statement that makes the rows of `table` under `where` equal to those of `fresh`."""
    columns = ", ".join((*key, *values))
    same = " AND ".join(f"fresh.{name} = kept.{name}" for name in key)
    return f"""
    WITH fresh AS MATERIALIZED ({fresh}),
    gone AS (
        DELETE FROM {table} kept WHERE {where} AND NOT EXISTS (SELECT FROM fresh WHERE {same}))
    INSERT INTO {table} AS kept ({columns})
    SELECT {columns} FROM fresh
    ON CONFLICT ({", ".join(key)}) DO UPDATE
    SET ({", ".join(values)}) = ROW ({", ".join(f"excluded.{name}" for name in values)})
    WHERE ({", ".join(f"kept.{name}" for name in values)})
        IS DISTINCT FROM ({", ".join(f"excluded.{name}" for name in values)})"""


@dataclass(frozen=True)
class RollupTable:
    """A table of cells by grain: a row's key, and its values; `steps` are in the key."""

    name: str
    key: tuple[str, ...]
    values: tuple[str, ...]
    measures: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    def replace(self, fresh: str, grain: str) -> str:
        """Return a statement that makes the rows of this grain in a range equal to those of `fresh`."""
        where = f"kept.grain = '{grain}' AND kept.bucket >= %(begin)s AND kept.bucket < %(end)s"
        rows = f"SELECT '{grain}' AS grain, part.* FROM ({fresh}) part"
        return replace_rows(self.name, rows, key=self.key, values=self.values, where=where)


RUNS: Final = RollupTable(
    "conversations_runrollup",
    key=("grain", "bucket", *CELL),
    values=(*RUN_MEASURES, "slots", "counts", "errors"),
    measures=tuple(RUN_MEASURES),
)
STEPS: Final = RollupTable(
    "conversations_steprollup",
    key=("grain", "bucket", "kind", "name", *CELL),
    values=(*STEP_MEASURES, "slots", "counts"),
    measures=STEP_MEASURES,
    steps=("kind", "name"),
)
MEMBER_SETS: Final = RollupTable(
    "conversations_memberset", key=("grain", "bucket", "kind", *CELL, "block"), values=("bits",)
)

LEARN_NAMES: Final = """
INSERT INTO conversations_versionname (version_id, kind, name, number)
SELECT DISTINCT ON (version_id) version_id, kind, name, number
FROM (SELECT DISTINCT prompt_versions FROM conversations_run
    WHERE created_at >= %(begin)s AND created_at < %(end)s) used,
    jsonb_to_recordset(used.prompt_versions) AS v(version_id int, kind text, name text, number int)
WHERE version_id IS NOT NULL AND number IS NOT NULL
ORDER BY version_id
ON CONFLICT (version_id) DO UPDATE
SET kind = excluded.kind, name = excluded.name, number = excluded.number
WHERE (conversations_versionname.kind, conversations_versionname.name, conversations_versionname.number)
    IS DISTINCT FROM (excluded.kind, excluded.name, excluded.number)
"""

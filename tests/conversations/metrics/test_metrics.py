"""Every metric against seven runs counted by hand (tests/support/metrics_seed.py)."""

from __future__ import annotations

import csv
import io
import json
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, date, datetime, timedelta
from itertools import chain, product
from math import ceil, floor, log2
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.utils import timezone

from config import database
from config.auth.bearer import create_api_token
from conversations.metrics import histograms, intervals, reconnects, refresh, rollup_reads, rollups
from conversations.metrics.query import parse_query
from conversations.models import Feedback, Run
from conversations.models.rollups import BLOCK, Metrics, StaleHour, ThreadOrdinal, UserOrdinal
from tests.support import metrics_seed
from tests.support.client import Client
from tests.support.metrics_seed import MONDAY, RANGE, TUESDAY, Seeded

TABLES = (
    "conversations_runrollup",
    "conversations_steprollup",
    "conversations_threadday",
    "conversations_memberset",
)


@pytest.fixture
def analyst(make_client: Callable[..., Client]) -> Client:
    """Somebody of the role that metrics are for."""
    found = make_client(is_staff=True)
    found.user.groups.set([Group.objects.get(name="analyst")])
    return found


@pytest.fixture
def seeded(database: None) -> Iterator[Seeded]:
    made = metrics_seed.seed()
    yield made
    metrics_seed.forget(made)


def ask(analyst: Client, sheet: str, **asked: Any) -> dict[str, Any]:
    answer = analyst.http.get(f"/api/v1/metrics/{sheet}", params=RANGE | asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def picked(row: dict[str, Any], *names: str) -> list[Any]:
    return [row[name] for name in names]


def test_the_overview_is_what_was_counted_by_hand(analyst: Client, seeded: Seeded) -> None:
    (row,) = ask(analyst, "overview", model=seeded.model)["rows"]
    assert row == {
        "period": "this",
        "from": "2026-01-05T00:00:00Z",
        "to": "2026-01-07T00:00:00Z",
        "runs": 7,
        "completed": 3,
        "failed": 2,
        "cancelled": 1,
        "timed_out": 1,
        "live": 1,
        "success_rate": 0.6,  # 3 of the 5 that ended by themselves
        "duration_ms_n": 3,
        "duration_ms_mean": 2966.7,  # (2500 + 5000 + 1400) / 3
        "duration_ms_p50": 2543.3,  # 2500, whose slot is around 2543.3
        "duration_ms_p95": 5086.6,  # 5000
        "duration_ms_p99": 5086.6,
        "queue_wait_ms_n": 7,
        "queue_wait_ms_mean": 142.9,  # (5 x 100 + 200 + 300) / 7
        "queue_wait_ms_p50": 103.1,  # 100
        "queue_wait_ms_p95": 291.5,  # 300
        "queue_wait_ms_p99": 291.5,
        "first_token_ms_n": 4,
        "first_token_ms_mean": 725.0,  # (500 + 1000 + 1000 + 400) / 4
        "first_token_ms_p50": 490.3,  # 500
        "first_token_ms_p95": 980.6,  # 1000
        "first_token_ms_p99": 980.6,
        "tokens_per_s_n": 3,
        "tokens_per_s_mean": 26.7,  # 50 in 2 s, 100 in 4 s, 30 in 1 s
        "tokens_per_s_p50": 25.8,  # 25
        "tokens_per_s_p95": 30.6,  # 30
        "tokens_per_s_p99": 30.6,
        "input_tokens": 370,
        "output_tokens": 180,
        "cached_tokens": 20,
        "reasoning_tokens": 40,
        "cost_usd": 0.75,
        "unpriced_tokens": 90,
        "reconnects": 0,
        "active_users": 2,
        "conversations": 4,
        "conversations_begun": 4,
        "conversations_per_user": 2.0,
        "turns_per_conversation": 1.75,
        "feedback": 3,
        "feedback_rate": 0.5,  # of the 6 that ended
        "feedback_good": 2,
        "feedback_bad": 1,
        "feedback_score": 0.3333,
        "feedback_score_low": -0.9733,  # 1/3 - 1.96 * 2/3
        "feedback_score_high": 1.0,
        "feedback_good_share": 0.6667,
        "feedback_good_share_low": 0.2077,  # Wilson, 2 of 3
        "feedback_good_share_high": 0.9385,
        "errors": {"deadline_exceeded": 1, "provider_error": 1},
    }


def test_a_series_has_every_bucket_and_adds_up_to_the_overview(analyst: Client, seeded: Seeded) -> None:
    days = ask(analyst, "timeseries", model=seeded.model, bucket="day")["rows"]
    names = (
        "bucket",
        "runs",
        "completed",
        "failed",
        "cancelled",
        "live",
        "active_users",
        "conversations",
    )
    assert [picked(row, *names) for row in days] == [
        ["2026-01-05T00:00:00Z", 5, 2, 2, 1, 0, 2, 3],
        ["2026-01-06T00:00:00Z", 2, 1, 0, 0, 1, 1, 1],
    ]
    hours = ask(analyst, "timeseries", model=seeded.model, bucket="hour")["rows"]
    assert len(hours) == 48
    ran = {row["bucket"][5:13]: row["runs"] for row in hours if row["runs"]}
    assert ran == {"01-05T10": 3, "01-05T11": 1, "01-05T23": 1, "01-06T00": 1, "01-06T01": 1}
    for bucket in ("week", "month"):
        (row,) = ask(analyst, "timeseries", model=seeded.model, bucket=bucket)["rows"]
        assert picked(row, "runs", "active_users", "conversations", "duration_ms_p50") == [
            7,
            2,
            4,
            2543.3,
        ]


def test_a_range_may_begin_and_end_in_the_middle_of_a_day(analyst: Client, seeded: Seeded) -> None:
    cut = {"from": "2026-01-05T10:40:00Z", "to": "2026-01-06T00:10:00Z"}  # 10:00 to 01:00
    (row,) = ask(analyst, "overview", model=seeded.model, **cut)["rows"]
    assert picked(row, "from", "to") == ["2026-01-05T10:00:00Z", "2026-01-06T01:00:00Z"]
    assert picked(row, "runs", "active_users", "conversations") == [6, 2, 4]
    later = {"from": "2026-01-05T11:00:00Z", "to": "2026-01-08"}
    (row,) = ask(analyst, "overview", model=seeded.model, **later)["rows"]
    assert picked(row, "runs", "active_users", "conversations") == [4, 2, 3]


def test_the_period_before_is_as_long(analyst: Client, seeded: Seeded) -> None:
    tuesday = {"from": "2026-01-06", "to": "2026-01-06", "compare": "previous"}
    this, before = ask(analyst, "overview", model=seeded.model, **tuesday)["rows"]
    assert picked(this, "period", "runs") == ["this", 2]
    assert picked(before, "period", "from", "runs") == ["previous", "2026-01-05T00:00:00Z", 5]


def test_stages_and_tools_are_counted_from_what_the_runs_noted(analyst: Client, seeded: Seeded) -> None:
    stages = ask(analyst, "stages", model=seeded.model)["rows"]
    names = ("calls", "latency_ms_mean", "latency_ms_p50", "latency_ms_p95", "latency_ms_p99")
    assert {row["stage"]: picked(row, *names) for row in stages} == {
        "execution": [2, 3500.0, 2332.2, 4664.5, 4664.5],  # 2300 and 4700, once a run
        "tool_execution": [2, 300.0, 122.6, 490.3, 490.3],
        "intent": [1, 40.0, 39.7, 39.7, 39.7],
    }
    (tool,) = ask(analyst, "tools", model=seeded.model)["rows"]
    assert tool == {
        "tool": "gym.search",
        "calls": 2,
        "succeeded": 1,
        "failed": 1,
        "success_rate": 0.5,
        "latency_ms_n": 2,
        "latency_ms_mean": 300.0,
        "latency_ms_p50": 122.6,
        "latency_ms_p95": 490.3,
        "latency_ms_p99": 490.3,
    }


def test_runs_are_grouped_and_filtered_by_every_dimension(analyst: Client, seeded: Seeded) -> None:
    for dimension, one, other in (("dialect", "text", "ag-ui"), ("runner", "chat", "demo")):
        rows = ask(analyst, "models", model=seeded.model, group_by=dimension)["rows"]
        assert {row[dimension]: row["runs"] for row in rows} == {one: 6, other: 1}
        (row,) = ask(analyst, "overview", model=seeded.model, **{dimension: other})["rows"]
        assert picked(row, "runs", "completed", "active_users", "conversations") == [1, 1, 1, 1]
    (row,) = [row for row in ask(analyst, "models")["rows"] if row["model"] == seeded.model]
    assert row["runs"] == 7
    series = ask(analyst, "timeseries", model=seeded.model, bucket="day", group_by="dialect")["rows"]
    found = [(row["bucket"][8:10], row["dialect"], row["runs"]) for row in series]
    assert found == [("05", "text", 5), ("06", "ag-ui", 1), ("06", "text", 1)]


def test_prompt_versions_are_named_and_two_are_compared(analyst: Client, seeded: Seeded) -> None:
    pair = f"{seeded.old},{seeded.new}"
    answer = ask(analyst, "prompts", model=seeded.model, versions=pair)
    names = ("prompt_version", "kind", "prompt", "runs", "feedback", "feedback_good", "success_rate")
    assert [picked(row, *names) for row in answer["rows"]] == [
        [seeded.old, "agent_system", "coach", 5, 2, 1, 0.5],
        [seeded.new, "agent_system", "coach", 2, 1, 1, 1.0],
    ]
    compared = answer["comparison"]
    assert picked(compared, "a", "b") == [seeded.old, seeded.new]
    # 2 of 4 against 1 of 1: +0.5; Newcombe's interval from Wilson's (0.15, 0.85) and (0.2065, 1)
    assert compared["success_rate"] == {"difference": 0.5, "low": -0.3672, "high": 0.85, "sure": False}
    assert compared["feedback_score"] is None  # one judgement says nothing of the spread


def test_users_are_listed_in_pages(analyst: Client, seeded: Seeded) -> None:
    first = ask(analyst, "users", model=seeded.model, limit=1)
    second = ask(analyst, "users", model=seeded.model, limit=1, cursor=first["next_cursor"])
    names = ("user_id", "runs", "conversations", "turns_per_conversation", "input_tokens")
    assert picked(first["rows"][0], *names) == [str(seeded.bob.pk), 4, 2, 2.0, 60]
    assert picked(second["rows"][0], *names) == [str(seeded.ada.pk), 3, 2, 1.5, 310]
    assert second["next_cursor"] is None


def test_one_user_is_counted_like_everybody(analyst: Client, seeded: Seeded) -> None:
    (row,) = ask(analyst, "overview", user=seeded.ada.pk)["rows"]
    names = ("runs", "completed", "failed", "active_users", "conversations", "duration_ms_p50")
    assert picked(row, *names) == [3, 2, 1, 1, 2, 2543.3]
    (tool,) = ask(analyst, "tools", user=seeded.ada.pk)["rows"]
    assert picked(tool, "tool", "calls") == ["gym.search", 2]
    assert ask(analyst, "tools", user=seeded.bob.pk)["rows"] == []


def test_runs_and_messages_are_listed_without_a_word_that_was_said(
    analyst: Client, seeded: Seeded
) -> None:
    first = ask(analyst, "runs", model=seeded.model, limit=4)
    rest = ask(analyst, "runs", model=seeded.model, limit=4, cursor=first["next_cursor"])
    rows = [*first["rows"], *rest["rows"]]
    newest = sorted(seeded.runs, key=lambda run: run.created_at, reverse=True)
    assert [row["run_id"] for row in rows] == [run.pk.hex for run in newest]
    oldest = rows[-1]
    names = ("status", "queue_wait_ms", "first_token_ms", "duration_ms", "feedback_score")
    assert picked(oldest, *names) == ["completed", 100.0, 500.0, 2500.0, 1]
    assert {row["metadata"] for row in rows} == {'{"order": 7}'}
    messages = ask(analyst, "messages", user=seeded.ada.pk)["rows"]
    tools = [picked(row, "tool", "ok", "latency_ms", "characters") for row in messages if row["tool"]]
    assert tools == [["gym.search", True, 120, 4], ["gym.search", False, 480, 4]]
    assert "said" not in json.dumps([rows, messages])


@pytest.mark.parametrize("sheet", ["overview", "timeseries", "stages", "users", "runs"])
def test_every_format_has_the_same_numbers(analyst: Client, seeded: Seeded, sheet: str) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    rows = ask(analyst, sheet, model=seeded.model)["rows"]
    assert rows

    def file(kind: str) -> bytes:
        asked = RANGE | {"model": seeded.model, "format": kind}
        answer = analyst.http.get(f"/api/v1/metrics/{sheet}", params=asked)
        assert answer.status_code == 200, answer.text
        assert f'filename="parley-{sheet}.{kind}"' in answer.headers["content-disposition"]
        return answer.content

    lines = [json.loads(line) for line in file("jsonl").splitlines()]
    assert lines == rows
    table = list(csv.DictReader(io.StringIO(file("csv").decode())))
    assert [list(line) for line in table] == [list(row) for row in rows]
    stored = arrow.read_table(io.BytesIO(file("parquet"))).to_pylist()
    numbers = [name for name, value in rows[0].items() if isinstance(value, int | float)]
    for row, line, kept in zip(rows, table, stored, strict=True):
        for name in numbers:
            assert float(line[name] or "nan") == pytest.approx(row[name], nan_ok=True)
            assert kept[name] == row[name]


def test_an_export_that_finds_nothing_still_has_its_columns(analyst: Client) -> None:
    asked = RANGE | {"model": "nobody's", "format": "csv"}
    text = analyst.http.get("/api/v1/metrics/users", params=asked).text
    assert text.startswith("user_id,username,runs,")
    assert text.count("\n") == 1


def test_to_add_up_again_changes_nothing(seeded: Seeded) -> None:
    def stored() -> list[Any]:
        with connection.cursor() as cursor:
            found = []
            for table in TABLES:
                cursor.execute(
                    f"SELECT xmin::text, * FROM {table} WHERE model = %s ORDER BY 1, 2, 3, 4, 5, 6",
                    [seeded.model],
                )
                found.append(cursor.fetchall())
            return found

    before = stored()
    assert all(before)
    database.run_sync(rollups.roll_up_range(MONDAY, TUESDAY))
    assert stored() == before  # not even written again


_SLOTS = "CROSS JOIN LATERAL unnest(slots, counts) part(slot, n)"
_ADDED_UP = (  # what to select, from where, by what
    ("slot, sum(n)", f"conversations_runrollup {_SLOTS}", "slot"),
    ("sum(runs), sum(failed), sum(cost_usd), sum(feedback_good)", "conversations_runrollup", ""),
    ("kind, name, slot, sum(n)", f"conversations_steprollup {_SLOTS}", "kind, name, slot"),
    (
        "kind, name, sum(calls), sum(succeeded), sum(total_ms)",
        "conversations_steprollup",
        "kind, name",
    ),
    ("kind, block, bit_or(bits)::text", "conversations_memberset", "kind, block"),
)


@pytest.mark.parametrize(("wanted", "table", "by"), _ADDED_UP)
def test_days_with_dimensions_added_up_are_those_of_the_cells(
    seeded: Seeded, wanted: str, table: str, by: str
) -> None:
    kept = {"t": "''", "m": "model", "p": "prompt_versions", "d": "dialect", "r": "runner"}
    grains = [("day", "d")] + ([("hour", "h")] if table.startswith("conversations_runrollup") else [])
    for (whole, letter), (cut, name) in product(grains, kept.items()):
        counted = []
        for grain in (whole, letter + cut):
            with connection.cursor() as cursor:
                cursor.execute(
                    f"""SELECT bucket, {name} AS kept, {wanted} FROM {table}
                    WHERE grain = %s AND bucket >= '2026-01-05' AND bucket < '2026-01-07'
                    GROUP BY bucket, kept {by and f", {by}"} ORDER BY bucket, kept {by and f", {by}"}""",
                    [grain],
                )
                counted.append(cursor.fetchall())
        assert counted[0] == counted[1], (whole, cut)
        assert counted[0]


_DISTINCT = """
SELECT count(DISTINCT owner_id), count(DISTINCT thread_id) FROM conversations_run
WHERE model = %s AND created_at >= %s AND created_at < %s AND {group} = %s
"""
_GROUPED = {
    "dialect": "dialect",
    "runner": "runner",
    "model": "model",
    "prompt_version": "(prompt_versions->0->>'version_id')::int",
}


@pytest.mark.parametrize("group", sorted(_GROUPED))
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2026-01-05T00:00:00+00:00", "2026-01-07T00:00:00+00:00"),  # two whole days
        ("2026-01-05T11:00:00+00:00", "2026-01-06T01:00:00+00:00"),  # the ends of two
        ("2026-01-04T00:00:00+00:00", "2026-01-06T01:00:00+00:00"),  # one, and a beginning
        ("2026-01-05T10:00:00+00:00", "2026-01-05T11:00:00+00:00"),  # an hour
    ],
)
def test_members_of_any_group_and_range_are_those_of_its_runs(
    seeded: Seeded, group: str, begin: str, end: str
) -> None:
    given = {"from": begin, "to": end, "model": seeded.model, "bucket": "day"}
    rows = database.run_sync(rollup_reads.fetch_by_group(parse_query(given), group))  # type: ignore[arg-type]
    assert rows
    for row in rows:
        with connection.cursor() as cursor:
            cursor.execute(
                _DISTINCT.format(group=_GROUPED[group]), [seeded.model, begin, end, row[group]]
            )
            distinct = cursor.fetchone()
        assert (row["active_users"], row["conversations"]) == distinct, row[group]


def test_members_whose_bits_lie_in_different_blocks_are_all_counted(
    analyst: Client, seeded: Seeded
) -> None:
    far = F("ordinal") + 10 * BLOCK
    assert UserOrdinal.objects.filter(member=seeded.ada.pk).update(ordinal=far) == 1
    assert ThreadOrdinal.objects.filter(member=seeded.threads[0].pk).update(ordinal=far) == 1
    database.run_sync(rollups.roll_up_range(MONDAY, TUESDAY))
    (row,) = ask(analyst, "overview", model=seeded.model)["rows"]
    assert picked(row, "active_users", "conversations") == [2, 4]


def test_who_has_no_run_left_has_no_bit_left(analyst: Client, seeded: Seeded) -> None:
    Run.objects.filter(pk__in=[run.pk for run in seeded.runs if run.owner_id == seeded.bob.pk]).delete()
    assert not UserOrdinal.objects.filter(member=seeded.bob.pk).exists()
    assert not ThreadOrdinal.objects.filter(member__in=[one.pk for one in seeded.threads[2:]]).exists()
    settle()
    (row,) = ask(analyst, "overview", model=seeded.model)["rows"]
    assert picked(row, "runs", "active_users", "conversations") == [3, 1, 2]


def test_what_is_deleted_or_judged_later_is_added_up_again(analyst: Client, seeded: Seeded) -> None:
    Feedback.objects.filter(run=seeded.runs[1]).update(score=1)
    settle()
    (row,) = ask(analyst, "overview", model=seeded.model)["rows"]
    assert picked(row, "feedback", "feedback_good", "feedback_bad") == [3, 3, 0]
    Feedback.objects.filter(run=seeded.runs[1]).delete()
    Run.objects.filter(pk=seeded.runs[4].pk).delete()
    settle()
    (row,) = ask(analyst, "overview", model=seeded.model)["rows"]
    assert picked(row, "runs", "cancelled", "feedback", "conversations") == [6, 0, 2, 4]


def test_a_live_run_is_counted_again_when_it_ends(analyst: Client, seeded: Seeded) -> None:
    live = seeded.runs[6]
    StaleHour.objects.get_or_create(at=live.created_at)  # as it was when the run was young
    settle()
    assert StaleHour.objects.filter(at=live.created_at).exists()  # until the run ends
    Run.objects.filter(pk=live.pk).update(
        status="completed", finished_at=live.created_at + timedelta(seconds=8)
    )
    settle()
    (row,) = ask(analyst, "overview", model=seeded.model)["rows"]
    assert picked(row, "completed", "live", "duration_ms_n") == [4, 0, 4]
    assert not StaleHour.objects.filter(at=live.created_at).exists()


def test_a_run_is_in_the_numbers_after_the_next_round(analyst: Client, client: Client) -> None:
    run_id = client.start()["run_id"]
    client.watch(run_id)
    client.watch(run_id, after=3)
    client.watch(run_id, after=5)
    settle()
    answer = analyst.http.get("/api/v1/metrics/overview", params={"user": str(client.user.pk)}).json()
    (row,) = answer["rows"]
    assert picked(row, "runs", "completed", "reconnects", "active_users") == [1, 1, 2, 1]
    assert row["first_token_ms_n"] == row["duration_ms_n"] == 1
    asked = {"dialect": "text", "runner": "demo"}
    (row,) = analyst.http.get("/api/v1/metrics/overview", params=asked).json()["rows"]
    assert row["completed"] >= 1
    tools = analyst.http.get("/api/v1/metrics/tools", params={"user": str(client.user.pk)}).json()
    assert [picked(row, "tool", "calls", "succeeded") for row in tools["rows"]] == [
        ["gymbro.exercise.search", 1, 1]
    ]


def test_only_who_may_see_metrics_sees_them(
    analyst: Client, client: Client, make_client: Callable[..., Client]
) -> None:
    def code(of: Client) -> tuple[int, str]:
        answer = of.http.get("/api/v1/metrics/overview")
        return answer.status_code, answer.json().get("code", "")

    assert code(analyst) == (200, "")
    assert code(make_client(is_superuser=True, is_staff=True)) == (200, "")
    assert code(client) == (403, "forbidden")
    support = make_client(is_staff=True)
    support.user.groups.set([Group.objects.get(name="support")])
    assert code(support) == (403, "forbidden")
    _, text = create_api_token(analyst.user, "an app's", scopes=["run", "read"])
    narrow = Client(analyst.url, text, analyst.user)
    assert code(narrow) == (403, "scope_missing")
    narrow.close()


@pytest.mark.parametrize(
    ("sheet", "asked", "code"),
    [
        ("overview", {"from": "yesterday"}, "invalid_range"),
        ("overview", {"from": "2026-02-01", "to": "2026-01-01"}, "invalid_range"),
        ("overview", {"from": "0001-01-01"}, "invalid_range"),
        ("timeseries", {"from": "2025-01-01", "to": "2026-01-01", "bucket": "hour"}, "invalid_range"),
        ("timeseries", {"bucket": "decade"}, "invalid_bucket"),
        ("timeseries", {"group_by": "mood"}, "invalid_group_by"),
        ("overview", {"format": "xml"}, "invalid_format"),
        ("overview", {"user": "me"}, "invalid_user_id"),
        ("overview", {"prompt_version": "99999999999"}, "invalid_filter"),
        ("prompts", {"versions": "1"}, "invalid_filter"),
        ("users", {"limit": "0"}, "invalid_limit"),
        ("users", {"cursor": "x"}, "invalid_cursor"),
        ("runs", {"cursor": "x"}, "invalid_cursor"),
        ("messages", {"model": "m"}, "invalid_filter"),
        ("messages", {"model": "m", "format": "csv"}, "invalid_filter"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    analyst: Client, sheet: str, asked: dict[str, str], code: str
) -> None:
    answer = analyst.http.get(f"/api/v1/metrics/{sheet}", params=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_there_is_no_other_sheet(analyst: Client) -> None:
    answer = analyst.http.get("/api/v1/metrics/secrets")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def sent(numbers: list[int]) -> bytes:
    """As PostgreSQL's array_send gives an array of int: five words of head, then length and value."""
    return struct.pack(
        f">5i{2 * len(numbers)}i", 1, 0, 23, len(numbers), 1, *chain(*((4, one) for one in numbers))
    )


def _slot_of(value: float) -> int:
    """As `slot_sql` gives it."""
    return 0 if value < 1 else 1 + floor(histograms.PER_DOUBLING * log2(value) + 1e-9)


def test_a_percentile_is_never_further_off_than_is_said() -> None:
    chance = Random(8)
    values = sorted(10 ** chance.uniform(0, 7) for _ in range(5_000))
    hours = []
    for some in (values[::2], values[1::2]):
        counts = Counter(_slot_of(value) for value in some)
        hours.append((sent(sorted(counts)), sent([counts[slot] for slot in sorted(counts)])))
    n, *found = histograms.spreads_of(hours)[0]
    assert n == 5_000
    for share, percentile in zip((0.5, 0.95, 0.99), found, strict=True):
        exact = values[ceil(share * n) - 1]
        assert percentile == pytest.approx(exact, rel=histograms.ERROR_BOUND * 1.001)


def test_the_nearest_rank_is_found_whatever_floats_say() -> None:
    merged = [
        (sent([5, 6]), sent([7, 93])),  # 7 of 100
        (sent([1_003, 1_009]), sent([19, 1])),  # something else, 95 % of 20 are 19
        (sent([]), sent([])),
    ]
    middle = histograms.middle
    assert histograms.spreads_of(merged) == {
        0: (100, middle(6), middle(6), middle(6)),
        1: (20, middle(3), middle(3), middle(9)),
    }


def test_intervals_are_those_of_the_textbook() -> None:
    # Newcombe (1998), table II, contrast (a): 56/70 against 48/80, method 10
    low, high = intervals.share_interval(48, 80), intervals.share_interval(56, 70)
    found = intervals.difference_of_shares(low, high)
    assert found is not None
    assert [round(value, 4) for value in found] == [0.2, 0.0524, 0.3339]
    assert intervals.share_interval(0, 0) is None
    assert [round(value, 4) for value in intervals.share_interval(0, 10) or ()] == [0.0, 0.0, 0.2775]


def test_the_command_adds_up_a_range_and_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("rollup", "--from", "2026-01-05", "--to", "2026-01-06")
    said = capsys.readouterr().out
    assert "2026-01-05 added up" in said
    assert "2 days added up in" in said


def test_the_command_takes_the_marks_of_what_it_has_added_up(seeded: Seeded) -> None:
    old, live = datetime(2026, 1, 5, 10, tzinfo=UTC), datetime(2026, 1, 6, 1, tzinfo=UTC)
    for at in (old, live):
        StaleHour.objects.get_or_create(at=at)
    call_command("rollup", "--from", "2026-01-05", "--to", "2026-01-06", verbosity=0)
    assert not StaleHour.objects.filter(at=old).exists()
    assert StaleHour.objects.filter(at=live).exists()  # it has a live run


def test_an_old_day_has_its_turn_however_long_the_newest_takes(
    seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ContextVar[list[date]]("own")  # a server beside us has rounds, too

    async def rolled(held: Any, day: date, *, begin: datetime, end: datetime) -> None:
        own.get([]).append(day)

    async def kept(held: Any, done: dict[datetime, int]) -> None: ...

    async def one_round() -> list[date]:
        own.set([])
        await rollups.roll_up(budget_s=0)
        return own.get()

    monkeypatch.setattr(rollups, "roll_up_day", rolled)
    monkeypatch.setattr(rollups, "_unmark_stale", kept)  # as if live runs kept every day stale
    StaleHour.objects.get_or_create(at=datetime(2026, 1, 5, 10, tzinfo=UTC))
    until = time.monotonic() + 60
    days: list[date] = []
    while MONDAY not in days:
        days = database.run_sync(one_round())
        assert len(days) <= 2
        assert time.monotonic() < until


def test_a_round_of_any_process_is_a_round_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    own: ContextVar[list[str]] = ContextVar("own")  # the server beside us makes rounds too
    rounds = []

    async def rolled() -> rollups.RollUpResult:
        rounds.append("a round")
        own.get([]).append("a round")
        return rollups.RollUpResult(1)

    async def ask() -> tuple[Any, list[str]]:
        own.set([])
        return await refresh.refresh_if_due(), own.get()

    monkeypatch.setattr(refresh, "roll_up", rolled)
    try:
        until = time.monotonic() + 60
        while not rounds:
            _due_in(timedelta(seconds=-1))
            database.run_sync(ask())
            assert time.monotonic() < until
        assert Metrics.objects.get().next_at > timezone.now() + timedelta(seconds=5)
        _due_in(timedelta(minutes=10))
        assert [database.run_sync(ask()) for _ in range(3)] == [(None, [])] * 3
    finally:
        _due_in(timedelta(0))


def test_a_clock_that_is_set_back_does_not_hold_up_adding_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def rolled() -> rollups.RollUpResult:
        return rollups.RollUpResult(1)

    monkeypatch.setattr(refresh, "roll_up", rolled)
    try:
        _due_in(timedelta(days=1))
        database.run_sync(refresh.refresh_if_due())  # or a server beside us
        assert Metrics.objects.get().next_at < timezone.now() + timedelta(hours=1)
    finally:
        _due_in(timedelta(0))


def _due_in(time_left: timedelta) -> None:
    Metrics.objects.update_or_create(
        id=1, defaults={"time_zone": "UTC", "next_at": timezone.now() + time_left}
    )


@pytest.mark.parametrize(
    ("took_s", "more", "rest_s"),
    [(0.1, False, 10), (1, False, 19), (2, False, 38), (5, False, 40), (12, False, 48), (2, True, 2)],
)
def test_a_long_round_is_followed_by_a_long_rest(took_s: float, more: bool, rest_s: float) -> None:
    assert refresh.rest_after(took_s, more=more) == rest_s


def test_every_stale_day_is_in_turn_once() -> None:
    days = [date(2026, 1, 5) - timedelta(days=ago) for ago in range(5)]
    assert [rollups._order_days(days[:count]) for count in range(3)] == [[], days[:1], days[:2]]
    seconds = set()
    for _ in range(200):
        first, second, *rest = rollups._order_days(days)
        assert [first, *sorted([second, *rest], reverse=True)] == days
        assert rest == sorted(rest, reverse=True)
        seconds.add(second)
    assert seconds == set(days[1:])


def settle() -> None:
    """Add up until nothing that is old is stale; while a server beside us does so, wait for it."""
    database.run_sync(reconnects.write_reconnects())
    until = time.monotonic() + 90
    while time.monotonic() < until:
        done = database.run_sync(rollups.roll_up(budget_s=60))
        if done is not None and not done.more:
            return
        time.sleep(0.1)
    raise AssertionError("still stale")


def test_hours_of_an_odd_zone_lie_in_their_days(settings: Any) -> None:
    settings.TIME_ZONE = "Asia/Kolkata"  # half an hour off
    at = datetime(2026, 1, 5, 18, 0, tzinfo=UTC)  # 23:30 there
    assert rollups._days_of(at) == [date(2026, 1, 6), date(2026, 1, 5)]
    begin, end = rollups._span_of([at])
    assert [begin.isoformat(), end.isoformat()] == [
        "2026-01-05T23:00:00+05:30",
        "2026-01-06T01:00:00+05:30",
    ]

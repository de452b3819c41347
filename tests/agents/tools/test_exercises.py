"""The exercises as a tool of runs and as rows that staff write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema
import psycopg
import pytest
from django.contrib.admin import site
from django.db import IntegrityError, connection, transaction
from django.test import RequestFactory

from agents.admin.exercises import ExerciseAdmin
from agents.models import Exercise as Row
from agents.models import official_id
from agents.tools import registry
from agents.tools.base import ToolFailure
from agents.tools.exercises import search_tool as exercises
from agents.tools.exercises.index import Library, to_dto
from config import database
from config.cache import keep_warm
from config.process import cancellation
from tests.support.client import Client
from tests.support.exercise_library import named

pytestmark = pytest.mark.once

# --- the tool -----------------------------------------------------------------------------------


@contextmanager
def stored(name: str, **fields: Any) -> Iterator[Row]:
    """A committed exercise, since the loader reads through a connection of its own."""
    row = Row.objects.create(name=name, **{"muscle_group": "OTHER", "category": "OTHER"} | fields)
    try:
        yield row
    finally:
        Row.objects.filter(pk=row.pk).delete()


def search(arguments: dict[str, Any]) -> dict[str, Any]:
    return database.run_sync(exercises.search_exercises(arguments))


@pytest.fixture
def fresh_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercises, "_cache", exercises.LibraryCache())


@pytest.mark.usefixtures("fresh_cache")
def test_the_tool_answers_with_dtos_of_the_table() -> None:
    media = {"thumbnailUrl": "https://example.org/a.jpg"}
    with stored("甲乙丙", aliases=["quxercise"], steps=["一"], media=media, default_sets=3) as row:
        row.refresh_from_db()
        answer = search({"query": "quxercise please", "top_k": 1})
    assert answer == {
        "total": 1,
        "results": [
            to_dto(named("甲乙丙"))
            | {
                "steps": ["一"],
                "media": media,
                "defaultSets": 3,
                "createdAt": int(row.created_at.timestamp() * 1000),
                "updatedAt": int(row.updated_at.timestamp() * 1000),
            }
        ],
    }


@pytest.mark.parametrize("top_k", [1, 3])
def test_the_total_of_a_frame_and_the_stored_words_count_the_results_of_the_event(
    client: Client, top_k: int
) -> None:
    """Seed 002: one `total` of `tool_result`, for every tool, however many matched."""
    accepted = client.start("练胸有什么动作？", exercise_top_k=top_k, enable_web_search=False)
    (told,) = (frame.data for frame in client.watch(accepted["run_id"]) if frame.event == "tool_result")
    result = told["result"]
    assert result == {"total": top_k, "results": result["results"]}
    assert len(result["results"]) == top_k
    stored = client.history(accepted["conversation_id"])["messages"]
    assert [one["content"] for one in stored if one["role"] == "tool"] == [
        f"gymbro.exercise.search: {top_k} found"
    ]


async def checked_anew(cache: exercises.LibraryCache) -> Library:
    await asyncio.sleep(0.03)
    return await cache.current()


def test_the_library_is_read_again_when_a_check_finds_a_change() -> None:
    async def play() -> None:
        cache = exercises.LibraryCache(seconds=0.02)
        first = await cache.current()
        row = await Row.objects.acreate(name="两秒之后", muscle_group="OTHER", category="OTHER")
        try:
            assert "两秒之后" in {one.name for one in (await checked_anew(cache)).exercises}
            # An edit that leaves updated_at alone is seen too.
            await Row.objects.filter(pk=row.pk).aupdate(description="改了")
            current = await checked_anew(cache)
            assert "改了" in {one.description for one in current.exercises}
            assert await checked_anew(cache) is current, "nothing changed, nothing was read"
        finally:
            await row.adelete()
        assert {one.name for one in (await checked_anew(cache)).exercises} == {
            one.name for one in first.exercises
        }

    database.run_sync(play())


def test_until_the_next_check_the_database_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        cache = exercises.LibraryCache()
        first = await cache.current()
        with monkeypatch.context() as away:
            away.setattr(database, "connection", None)
            assert await cache.current() is first

    database.run_sync(play())


def test_while_it_is_in_use_the_library_is_checked_ahead_of_the_next_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run waits for its search, and a lone client's runs come seconds apart."""

    async def play() -> None:
        cache = exercises.LibraryCache(seconds=0.5)
        warming = asyncio.create_task(keep_warm())
        try:
            first = await cache.current()
            await asyncio.sleep(1.2)
            with monkeypatch.context() as away:
                away.setattr(database, "connection", None)
                assert await cache.current() is first
        finally:
            await cancellation.cancel_all([warming])

    database.run_sync(play())


@pytest.mark.usefixtures("fresh_cache")
def test_a_database_that_is_away_is_a_tool_failure_in_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise psycopg.OperationalError("password of host db-7 is wrong")

    monkeypatch.setattr(database, "connection", away)
    with pytest.raises(ToolFailure) as failure:
        search({"query": "卧推"})
    assert failure.value.code == "exercise_search_failed"
    assert failure.value.message == "The exercise library cannot be read now."


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": ""},
        {"query": 5},
        {"query": None},
        {"query": "卧推", "top_k": 0},
        {"query": "卧推", "top_k": 11},
        {"query": "卧推", "top_k": "5"},
        {"query": "卧推", "top_k": True},
        {"query": "卧推", "limit": 5},
    ],
)
def test_bad_arguments_are_refused_as_the_schema_says(arguments: dict[str, Any]) -> None:
    assert not jsonschema.Draft202012Validator(exercises.TOOL.parameters).is_valid(arguments)
    with pytest.raises(ToolFailure) as failure:
        search(arguments)
    assert failure.value.code == "invalid_arguments"


def test_the_registry_lists_the_search_first_and_may_repeat_it() -> None:
    tool = registry.find("gymbro.exercise.search")
    assert tool is registry.all_tools()[0]
    assert tool.idempotent
    assert tool is exercises.TOOL
    assert tool.call is exercises.search_exercises
    assert registry.find("no.such.tool") is None
    jsonschema.Draft202012Validator.check_schema(tool.parameters)


# --- admin --------------------------------------------------------------------------------------


def form_of(**changes: Any) -> Any:
    admin = ExerciseAdmin(Row, site)
    form_class = admin.get_form(RequestFactory().get("/"))
    written = {
        "name": "管理员写的",
        "muscle_group": "CHEST",
        "category": "UPPER_BODY",
        "difficulty": "BEGINNER",
        "source": "OFFICIAL",
        "media": "{}",
    }
    return form_class(data=written | changes)


@pytest.mark.django_db
def test_staff_write_lists_one_entry_a_line() -> None:
    form = form_of(
        steps="Stand up, slowly.\r\n\r\n  Sit down. \n", equipment=["BENCH", "NONE"], aliases=""
    )
    assert form.errors == {}
    row = form.save()
    row.refresh_from_db()
    assert row.id == official_id("管理员写的")
    assert [row.steps, row.equipment, row.aliases] == [
        ["Stand up, slowly.", "Sit down."],
        ["BENCH", "NONE"],
        [],
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("equipment", ["ROPE"]),
        ("muscle_group", "EAR"),
        ("aliases", "a" * 201),
        ("steps", "a\x00b"),
        ("media", '{"thumbnailUrl": "javascript:alert(1)"}'),
        ("media", '{"thumbnailUrl": "https://example.org/\\u0000"}'),
        ("media", "[1]"),
        ("default_sets", "11"),
    ],
)
def test_what_staff_may_not_write(field: str, value: Any) -> None:
    assert field in form_of(**{field: value}).errors


@pytest.mark.django_db
def test_staff_find_an_exercise_by_an_alias() -> None:
    row = Row.objects.create(
        name="别名测试", aliases=["Quxlift", "丁戊"], muscle_group="OTHER", category="OTHER"
    )
    admin = ExerciseAdmin(Row, site)
    request = RequestFactory().get("/")
    for asked in ("quxl", "丁戊", "别名"):
        rows, _ = admin.get_search_results(request, Row.objects.all(), asked)
        assert row in rows


@pytest.mark.django_db
def test_the_database_knows_the_closed_sets() -> None:
    row = Row.objects.create(name="约束测试", muscle_group="OTHER", category="OTHER")
    for column in ("muscle_group", "category", "difficulty", "source"):
        with connection.cursor() as cursor, pytest.raises(IntegrityError, match="violates check"):
            _in_savepoint(cursor, f"UPDATE agents_exercise SET {column} = 'NO' WHERE id = %s", row.pk)


def _in_savepoint(cursor: Any, statement: str, pk: str) -> None:
    with transaction.atomic():
        cursor.execute(statement, [pk])

"""The web search against a loopback Exa: results, every refusal, the cache, and no secret anywhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.cache import cache
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings
from structlog.testing import capture_logs

from agents.dialects import text_run
from agents.intake.submit import allowed_prefetch
from agents.tools import web_search
from agents.tools.base import ToolFailure
from agents.tools.exa_results import NoResults, parse_results
from benchmarks.ports import free_port
from config.database import run_sync
from conversations.models import Message
from prompts import app_settings
from prompts.endpoints import web_search_key as web_search_key
from prompts.models import Secret
from tests.support.client import Client
from tests.support.fakes.fake_exa import KEY, Answer, FakeExa, forget, found, page, refused, switched_on

pytestmark = pytest.mark.once

MARK = "cAnArYbOdY0123456789"
PAGE = page(score=0.5)
RESULT = {
    "title": "Training news",
    "url": "https://example.com/a",
    "published_date": "2026-11-01T00:00:00.000Z",
    "author": "A. Coach",
    "score": 0.5,
    "snippet": "Short text.",
}


@pytest.fixture(scope="session")
def fake() -> Iterator[FakeExa]:
    with FakeExa() as server:
        yield server


@pytest.fixture
def exa(fake: FakeExa, settings: Settings) -> Iterator[FakeExa]:
    """A loopback Exa that staff have set up and switched on."""
    with switched_on(fake, settings) as exa:
        yield exa


def ask(exa: FakeExa, answer: Answer, **more: Any) -> dict[str, Any]:
    query = uuid4().hex
    exa.answers[query] = answer
    return run_sync(web_search.search_web({"query": query} | more))


def code_of(query: str, **more: Any) -> str:
    with pytest.raises(ToolFailure) as failure:
        run_sync(web_search.search_web({"query": query} | more))
    assert MARK not in failure.value.message
    assert KEY not in failure.value.message
    return failure.value.code


# --- the tool -----------------------------------------------------------------------------------


def test_a_search_is_one_post_to_exa_and_its_results_in_our_words(exa: FakeExa) -> None:
    query = f"news {uuid4().hex}"
    exa.answers[query] = found(PAGE)
    answer = run_sync(web_search.search_web({"query": f"  {query} ", "top_k": 3}))
    assert answer == {"provider": "exa", "total": 1, "results": [RESULT]}
    (asked,) = exa.requests_for(query)
    assert (asked.path, asked.key) == ("/search", KEY)
    assert asked.body == {
        "query": query,
        "numResults": 3,
        "type": "auto",
        "contents": {"text": True},
    }


def test_an_answer_is_kept_by_top_k_and_lower_cased_query(exa: FakeExa) -> None:
    query = f"MiXeD {uuid4().hex}"
    exa.answers[query] = found(PAGE)
    first = run_sync(web_search.search_web({"query": query}))
    exa.answers[query] = Answer(500)
    assert run_sync(web_search.search_web({"query": query.lower()})) == first
    assert len(exa.requests_for(query)) == 1
    assert code_of(query, top_k=4) == "upstream_error"


def test_a_search_of_kept_pages_fetches_none_and_is_kept_apart(exa: FakeExa) -> None:
    query = uuid4().hex
    exa.answers[query] = found(PAGE)
    run_sync(web_search.search_web({"query": query}))
    assert run_sync(web_search.search_stored_pages({"query": query}))["results"] == [RESULT]
    asked = [one.body["contents"] for one in exa.requests_for(query)]
    assert asked == [{"text": True}, {"text": True, "maxAgeHours": -1}]


def test_a_refusal_is_not_kept(exa: FakeExa) -> None:
    query = uuid4().hex
    exa.answers[query] = Answer(429)
    assert code_of(query) == "upstream_rate_limited"
    exa.answers[query] = found(PAGE)
    assert run_sync(web_search.search_web({"query": query}))["total"] == 1


def test_an_echo_of_the_key_in_a_result_is_masked(exa: FakeExa) -> None:
    answer = ask(exa, found(PAGE | {"text": f"x-api-key: {KEY}", "title": KEY}))
    assert (answer["results"][0]["snippet"], answer["results"][0]["title"]) == ("x-api-key: ***", "***")


def test_long_texts_are_cut_and_what_is_odd_is_left_out(exa: FakeExa) -> None:
    odd = [
        PAGE | {"title": "t" * 300, "text": "s " * 300, "score": "high", "author": 7},
        {"url": "https://example.com/b"},
        {"url": "javascript:alert(1)", "title": "x"},
        {"title": "no address"},
        "no object",
        PAGE | {"title": "half \ud800 nul \x00", "publishedDate": None, "score": True},
    ]
    answer = ask(exa, found(*odd), top_k=10)
    first, second, third = answer["results"]
    assert (len(first["title"]), first["title"][-1]) == (200, "…")
    assert (len(first["snippet"]), first["snippet"][-1]) == (240, "…")
    assert (first["score"], first["author"]) == (None, None)
    assert second == {
        "title": "https://example.com/b",
        "url": "https://example.com/b",
        "published_date": None,
        "author": None,
        "score": None,
        "snippet": "",
    }
    assert third["title"] == "half \ufffd nul"
    assert answer["total"] == 3


def test_no_more_results_than_asked_for(exa: FakeExa) -> None:
    assert ask(exa, found(PAGE, PAGE, PAGE), top_k=2)["total"] == 2


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (refused(401, "INVALID_API_KEY", MARK), "upstream_auth_error"),
        (refused(400, "INVALID_API_KEY", MARK), "upstream_auth_error"),
        (refused(400, "INVALID_REQUEST_BODY", MARK), "upstream_error"),
        (refused(402, "NO_MORE_CREDITS", MARK), "upstream_quota_exceeded"),
        (refused(402, "API_KEY_BUDGET_EXCEEDED", MARK), "upstream_quota_exceeded"),
        (Answer(401, MARK.encode()), "upstream_auth_error"),
        (Answer(400, f'{{"error":"Invalid API key {MARK}"}}'.encode()), "upstream_auth_error"),
        (Answer(400, b'{"error":"x-api-key header is wrong"}'), "upstream_auth_error"),
        (Answer(400, f'{{"error":"bad query {MARK}"}}'.encode()), "upstream_error"),
        (Answer(402, MARK.encode()), "upstream_quota_exceeded"),
        (Answer(429, MARK.encode()), "upstream_rate_limited"),
        (Answer(403, MARK.encode()), "upstream_error"),
        (Answer(500, MARK.encode()), "upstream_error"),
        (Answer(302, b"", {"Location": "http://127.0.0.1:9/"}), "upstream_error"),
        (Answer(500, b"x" * 200_000), "upstream_error"),
        (Answer(200, f"<html>{MARK}".encode()), "upstream_invalid_json"),
        (Answer(200, b""), "upstream_invalid_json"),
        (Answer(200, b"[]"), "upstream_invalid_json"),
        (Answer(200, b'{"results": {}}'), "upstream_invalid_json"),
        (Answer(200, b"[" * 200_000), "upstream_invalid_json"),
        (Answer(200, b'{"results": [' + b"1" * 9_000_000), "upstream_error"),
        (Answer(200, b'{"results": []}', cut=True), "network_error"),
    ],
)
def test_every_refusal_has_its_code(exa: FakeExa, answer: Answer, code: str) -> None:
    query = uuid4().hex
    exa.answers[query] = answer
    assert code_of(query) == code


def test_an_exa_that_hangs_or_is_not_there_is_a_network_error(
    exa: FakeExa, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_search, "TIMEOUT_S", 0.3)
    query = uuid4().hex
    exa.answers[query] = Answer(stay=True)
    assert code_of(query) == "network_error"
    settings.EXA_BASE_URL = f"http://127.0.0.1:{free_port()}"
    assert code_of(query) == "network_error"
    settings.EXA_BASE_URL = "http://"
    assert code_of(query) == "network_error"


def test_a_query_and_a_key_are_required(exa: FakeExa, settings: Settings) -> None:
    assert code_of(" \n ") == "query_required"
    with pytest.raises(ToolFailure) as failure:
        run_sync(web_search.search_web({}))
    assert failure.value.code == "query_required"
    assert code_of("x", top_k=11) == "invalid_arguments"
    assert code_of("x", more=1) == "invalid_arguments"
    web_search_key.store_key("", by=None)
    forget()
    with pytest.raises(ToolFailure) as failure:
        run_sync(web_search.search_web({"query": "x"}))
    assert (failure.value.code, failure.value.message) == (
        "missing_api_key",
        "EXA api key is required",
    )
    settings.EXA_API_KEY = "from-the-environment"
    query = uuid4().hex
    exa.answers[query] = found()
    assert run_sync(web_search.search_web({"query": query}))["total"] == 0
    assert exa.requests_for(query)[0].key == "from-the-environment"


def test_a_key_that_no_sealing_key_opens_is_none(exa: FakeExa) -> None:
    Secret.objects.filter(name="web_search_exa").update(sealed="gAAAAA" + "x" * 60)
    forget()
    assert code_of("x") == "missing_api_key"


def test_a_cache_that_is_away_costs_the_cache_only(
    exa: FakeExa, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise ConnectionError("redis is away")

    monkeypatch.setattr(cache, "aget", away)
    monkeypatch.setattr(cache, "aset", away)
    assert ask(exa, found(PAGE))["total"] == 1


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(["results", "url", "title", "text", "score"]) | st.text(), x
            )
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_whatever_exa_sends_is_results_or_none(body: bytes) -> None:
    try:
        given_results = parse_results(body, top_k=5)
    except NoResults:
        return
    json.dumps(given_results, ensure_ascii=False).encode()


# --- in a run -----------------------------------------------------------------------------------


def events(client: Client, query: str, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    accepted = client.start(query, **more)
    frames = client.watch(accepted["run_id"])
    assert frames[-1].event == "completed"
    return [
        (frame.event, frame.data)
        for frame in frames
        if frame.event.startswith("tool_") and frame.data["tool_name"] == web_search.NAME
    ]


def test_a_run_searches_the_web_after_the_library_when_staff_allow_it(
    exa: FakeExa, client: Client
) -> None:
    query = uuid4().hex
    exa.answers[query] = found(PAGE)
    (start, said), (end, told) = events(client, query, web_search_top_k=2)
    assert (start, end) == ("tool_start", "tool_result")
    assert said["args"] == {"query": query, "top_k": 2}
    assert told["ok"] is True
    assert told["result"] == {"provider": "exa", "total": 1, "results": [RESULT]}


def test_the_message_id_of_each_tool_row_identifies_it(exa: FakeExa, client: Client) -> None:
    query = f"卧推 {uuid4().hex}"
    exa.answers[query] = found(PAGE)
    accepted = client.start(query)
    client.watch(accepted["run_id"])
    rows = Message.objects.filter(run_id=accepted["run_id"], role="tool").order_by("seq")
    assert [(row.client_id, row.metadata["message_id"]) for row in rows] == [
        (f"tool-{accepted['run_id']}-prefetch-{number}",) * 2 for number in (1, 2)
    ]
    assert [one["id"] for one in client.history(accepted["conversation_id"])["messages"][1:3]] == [
        row.metadata["message_id"] for row in rows
    ]


def test_a_request_can_only_switch_the_search_off(exa: FakeExa, client: Client) -> None:
    assert events(client, uuid4().hex, enable_web_search=False) == []
    app_settings.change("web_search_enabled", False, by=None)
    forget()
    assert events(client, uuid4().hex, enable_web_search=True) == []
    assert events(client, uuid4().hex) == []


def test_a_search_that_fails_does_not_fail_the_run(exa: FakeExa, client: Client) -> None:
    web_search_key.store_key("", by=None)
    forget()
    _, (_, told) = events(client, uuid4().hex)
    assert told["ok"] is False
    assert told["error"] == {"code": "missing_api_key", "message": "EXA api key is required"}
    assert "result" not in told


def test_a_frame_says_how_long_its_tool_took(
    exa: FakeExa, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_search, "TIMEOUT_S", 0.3)
    query = uuid4().hex
    exa.answers[query] = Answer(stay=True)
    _, (_, told) = events(client, query)
    assert told["error"]["code"] == "network_error"
    assert 300 <= told["elapsed_ms"] < 10_000


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_neither_the_key_nor_a_body_reaches_a_frame_a_row_or_a_log(
    exa: FakeExa, client: Client, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    query = uuid4().hex
    page = PAGE | {"text": "a " * 400 + MARK, "secret": MARK}
    body = json.dumps({"error": f"api key {KEY} {MARK}", "results": [page]}).encode()
    exa.answers[query] = Answer(status, body, {"X-Note": MARK})
    with capture_logs() as lines, caplog.at_level(logging.DEBUG):
        accepted = client.start(query)
        frames = client.watch(accepted["run_id"])
    assert frames[-1].event == "completed"
    run_id = UUID(accepted["run_id"])
    with connection.cursor() as cursor:
        cursor.execute("SELECT events::text FROM conversations_eventbatch WHERE run_id = %s", [run_id])
        stored = cursor.fetchall()
        cursor.execute("SELECT run::text FROM conversations_run run WHERE id = %s", [run_id])
        stored += cursor.fetchall()
        cursor.execute("SELECT m::text FROM conversations_message m WHERE run_id = %s", [run_id])
        stored += cursor.fetchall()
    assert any(web_search.NAME in row for (row,) in stored)
    everything = f"{[frame.data for frame in frames]} {stored} {lines} {caplog.text}"
    for secret in (KEY, KEY[4:], MARK):
        assert secret not in everything


# --- whether to search --------------------------------------------------------------------------


def test_staff_decide_for_all_and_a_client_for_itself() -> None:
    def names(web_search: bool, **more: Any) -> list[str]:
        asked = text_run.parse({"model": "m", "text": "t"} | more, request_id="r")
        return [use.name for use in allowed_prefetch(asked, web_search=web_search)]

    assert names(True) == ["gymbro.exercise.search", "web_search.exa"]
    assert names(False) == ["gymbro.exercise.search"]
    assert names(True, enable_web_search=False) == ["gymbro.exercise.search"]
    assert names(False, enable_web_search=True) == ["gymbro.exercise.search"]
    assert names(True, enable_exercise_search=False) == ["web_search.exa"]

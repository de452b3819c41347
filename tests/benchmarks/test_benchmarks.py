"""The tools that measure and the model that misbehaves, tried without Parley."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
import uvloop

from benchmarks import chart, load
from benchmarks import fake_model as bench_model
from benchmarks import providers as provider_bench
from benchmarks.measure import Cell, Faults, Spread, Tree, measure
from benchmarks.report import GOALS, report
from prompts.models import ProviderDialect
from tests.support.fakes.fake_model import (
    CASES,
    DETAILED_USAGE,
    DETAILS,
    TEXT,
    USAGE,
    Answer,
    End,
    FakeModel,
    status,
    text,
)

pytestmark = pytest.mark.once

# --- the benchmark's own parts --------------------------------------------------------------------


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    server = await asyncio.get_running_loop().create_server(bench_model.FakeModel, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def test_fake_model_streams_numbered_tokens_and_a_clean_measurement_says_so() -> None:
    async def once() -> Any:
        async with serving() as port:
            before = (await load.fetch(port, load.Call("/stats")))["tokens"]
            result = await measure(
                load.fake_model(port), Cell(3, 1, tokens=30), Tree([]), Tree([]), seconds=0, limit_s=20
            )
            return result, (await load.fetch(port, load.Call("/stats")))["tokens"] - before

    result, tokens = uvloop.run(once())
    assert (result.runs, result.errors, result.faults) == (3, {}, Faults(0, 0, 0, 0))
    assert tokens == 3 * 30 + 2 * 20  # two warm-up runs
    assert result.total.p50 >= 27  # 29 pauses of 1 ms, which uvloop's timers count roughly


def test_fake_model_keeps_the_connection_and_ends_with_usage_and_done() -> None:
    async def twice() -> list[bytes]:
        async with serving() as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            answers = [await client.post("/v1/chat/completions", json=_asked(2)) for _ in range(2)]
            return [answer.content for answer in answers]

    first, second = uvloop.run(twice())
    assert first == second
    assert re.findall(rb'"content":"(.*?)"', first) == [b"", b"t0 ", b"t1 "]
    assert first.endswith(b"data: [DONE]\n\n")
    assert b'"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}' in first


def test_fake_model_notices_a_client_that_leaves() -> None:
    async def leave() -> None:
        async with serving() as port:
            before = (await load.fetch(port, load.Call("/stats")))["aborted"]
            run = await load.run_once(
                load.fake_model(port), "tokens=1000 delay_ms=100", limit_s=0.3
            )  # given up in the middle
            assert run.error.startswith("TimeoutError")
            async with asyncio.timeout(5):
                while (await load.fetch(port, load.Call("/stats")))["aborted"] == before:
                    pass

    uvloop.run(leave())


def test_reader_finds_the_text_however_the_stream_is_cut() -> None:
    stream = (
        b": " + b" " * 2048 + b"\n\n"
        b'event: status\nid: 1\ndata: {"message_id":"a","state":"working","request_id":"t9 "}\n\n'
        b'event: content_delta\nid: 2\ndata: {"message_id":"a","seq":1,"delta":"t0 t1 "}\n\n'
        b'event: heartbeat\ndata: {"ts":1}\n\n'
        b'event: content_delta\nid: 3\ndata: {"delta": "t2 ", "seq": 2}\n\n'
        b'event: completed\nid: 4\ndata: {"reply_len":9}\n\n'
    )

    async def read(size: int) -> tuple[bytes, int, bool]:
        run = load.Run()
        reader = load.Reader(load.parley(0, "token", "bench"), run)
        for start in range(0, len(stream), size):
            reader.feed(stream[start : start + size])
        return run.text, run.frames, reader.finished.done()

    for size in (1, 7, 64, len(stream)):
        assert uvloop.run(read(size)) == (b"t0 t1 t2 ", 2, True)


def test_reader_keeps_the_error_of_a_failed_run() -> None:
    async def read() -> load.Run:
        run = load.Run()
        load.Reader(load.parley(0, "", ""), run).feed(
            b'event: error\ndata: {"code":"upstream_error"}\n\n'
        )
        return run

    assert "upstream_error" in uvloop.run(read()).error


@pytest.mark.parametrize(
    ("received", "faults"),
    [
        (b"t0 t1 t2 ", Faults(lost=0, doubled=0, reordered=0, garbled=0)),
        (b"t0 t2 ", Faults(lost=1, doubled=0, reordered=0, garbled=0)),
        (b"t0 t1 t1 t2 ", Faults(lost=0, doubled=1, reordered=0, garbled=0)),
        (b"t0 t2 t1 ", Faults(lost=0, doubled=0, reordered=1, garbled=0)),
        (b"t0 t1 t2 !", Faults(lost=0, doubled=0, reordered=0, garbled=1)),
    ],
)
def test_faults_are_counted_by_kind(received: bytes, faults: Faults) -> None:
    assert Faults.of([load.Run(text=received)], 3) == faults


@pytest.mark.parametrize(
    ("made", "left_s", "another"), [(0, -1, True), (1, 0.11, True), (1, 0.09, False), (9, 5, True)]
)
def test_a_client_begins_no_run_that_would_mostly_lie_outside_the_window(
    made: int, left_s: float, another: bool
) -> None:
    assert Cell(2, 10, tokens=21).has_another(made, left_s=left_s) is another  # 0.2 s a run


def test_each_client_makes_the_least_number_of_runs_and_none_outside_the_window() -> None:
    async def once() -> Any:
        async with serving() as port:
            cell = Cell(2, 10, tokens=21, least_runs=2)
            return await measure(load.fake_model(port), cell, Tree([]), Tree([]), seconds=0, limit_s=20)

    assert uvloop.run(once()).runs == 2 * 2


def test_spread_is_the_median_and_the_99th_in_milliseconds() -> None:
    assert Spread.of([i / 1000 for i in range(1, 101)]) == Spread(50.5, 99.0)
    assert Spread.of([0.001, 0.003]) == Spread(2.0, 3.0)
    assert Spread.of([]) == Spread(0.0, 0.0)


def test_report_sets_what_was_measured_beside_the_peers() -> None:
    async def once() -> Any:
        async with serving() as port:
            return await measure(
                load.fake_model(port), Cell(8, 0, 5), Tree([]), Tree([]), seconds=0, limit_s=20
            )

    printed = report([uvloop.run(once())], heading="Here")
    assert "| 8 × 0 ms | fake model itself |" in printed
    assert "| django-ag-ui 0.70, then | 1,245 | 986 |" in printed
    assert [goal.verdict(goal.goal) for goal in GOALS] == ["goal reached"] * len(GOALS)
    assert [goal.verdict(goal.must) for goal in GOALS] == ["**missed**"] * len(GOALS)


def _asked(tokens: int) -> dict[str, Any]:
    prompt = f"tokens=9 delay_ms=5000, no: tokens={tokens} delay_ms=0"  # the last one counts
    return {"model": "bench", "stream": True, "messages": [{"role": "user", "content": prompt}]}


# --- the scripted model of the tests --------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    with FakeModel() as running:
        yield running


@pytest.fixture
def client(model: FakeModel) -> Iterator[httpx.Client]:
    key = {"authorization": "Bearer sk-test"}
    with httpx.Client(base_url=model.base_url, headers=key, timeout=5) as opened:
        yield opened


def ask(client: httpx.Client, name: str, **extra: Any) -> httpx.Response:
    return client.post("/chat/completions", json=_body(name) | extra)


_SEARCH = {"id": "call_a", "type": "function", "function": {"name": "search", "arguments": "{}"}}
CALLS_A = {"role": "assistant", "tool_calls": [_SEARCH]}


def _body(name: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Hi"}]
    return {
        "model": name,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": messages,
    }


def chunks(answer: httpx.Response) -> list[dict[str, Any]]:
    lines = [
        line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")
    ]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def said(answer: httpx.Response) -> str:
    return "".join(_delta(chunk).get("content") or "" for chunk in chunks(answer))


def _delta(chunk: dict[str, Any]) -> dict[str, Any]:
    return dict(chunk["choices"][0]["delta"]) if chunk["choices"] else {}


def _finish(answer: httpx.Response) -> list[str]:
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks(answer) if chunk["choices"]]
    return [reason for reason in reasons if reason]


def test_plain_answer_has_the_documented_wire_format(client: httpx.Client, model: FakeModel) -> None:
    answer = ask(client, "plain-wire")
    (received,) = model.requests_for("plain-wire")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["x-request-id"] == received.request_id
    assert chunks(answer)[1] == {
        "id": f"chatcmpl-{received.request_id}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "plain-wire",
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
        "obfuscation": "aZ09",
        "usage": None,
        "choices": [
            {"index": 0, "delta": {"content": TEXT[0]}, "logprobs": None, "finish_reason": None}
        ],
    }
    assert (said(answer), _finish(answer)) == ("".join(TEXT), ["stop"])
    assert (chunks(answer)[-1]["choices"], chunks(answer)[-1]["usage"]) == ([], DETAILS | USAGE)
    assert received.headers["authorization"] == "Bearer sk-test"
    assert received.body == _body("plain-wire")


def test_usage_comes_only_when_asked_for(client: httpx.Client) -> None:
    assert all("usage" not in chunk for chunk in chunks(ask(client, "plain", stream_options=None)))
    assert chunks(ask(client, "usage"))[-1]["usage"] == DETAILED_USAGE
    assert all(chunk["usage"] is None for chunk in chunks(ask(client, "no-usage")))


@pytest.mark.parametrize("name", ["crlf", "split", "reasoning", "usage", "no-usage"])
def test_variants_of_a_good_answer_carry_the_same_text(client: httpx.Client, name: str) -> None:
    answer = ask(client, name)
    assert (said(answer), _finish(answer)) == ("".join(TEXT), ["stop"])
    assert ("\r\n" in answer.text) == (name == "crlf")


def test_split_cuts_inside_characters(client: httpx.Client) -> None:
    with client.stream("POST", "/chat/completions", json=_body("split")) as answer:
        parts = list(answer.iter_raw())
    with pytest.raises(UnicodeDecodeError):
        [part.decode() for part in parts]
    assert "你好" in b"".join(parts).decode()


@pytest.mark.parametrize(
    ("name", "wanted", "reason"),
    [
        ("length", "Hello", "length"),
        ("content-filter", "Hel", "content_filter"),
        ("silent", "", "stop"),
        ("huge", "x" * 100_000, "stop"),
        ("comments", "Hello", "stop"),
    ],
)
def test_unusual_ends(client: httpx.Client, name: str, wanted: str, reason: str) -> None:
    answer = ask(client, name)
    assert (said(answer), _finish(answer)) == (wanted, [reason])


@pytest.mark.parametrize("code", [400, 401, 403, 404, 429, 500, 503])
def test_status_gives_an_error_body(client: httpx.Client, code: int) -> None:
    answer = ask(client, f"status-{code}")
    assert answer.status_code == code
    assert {"message", "type", "code", "param"} == set(answer.json()["error"])
    assert answer.headers.get("retry-after") == ("1" if code == 429 else None)


@pytest.mark.parametrize(("name", "turns"), [("tools", [0] * 6), ("woven", [0, 1] * 3)])
def test_tool_calls_arrive_in_pieces(client: httpx.Client, name: str, turns: list[int]) -> None:
    answer = ask(client, name)
    pieces = [call for chunk in chunks(answer) for call in _delta(chunk).get("tool_calls", [])]
    arguments: dict[int, str] = {0: "", 1: ""}
    for piece in pieces:
        arguments[piece["index"]] += piece["function"]["arguments"]
    assert [piece["index"] for piece in pieces[:6]] == turns
    assert [json.loads(arguments[i]) for i in (0, 1)] == [
        {"query": "卧推", "top_k": 3},
        {"city": "São Paulo"},
    ]
    assert _finish(answer) == ["tool_calls"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([{"role": "tool", "tool_call_id": "call_a", "content": "[]"}], "preceeding message"),
        ([CALLS_A, {"role": "tool", "tool_call_id": "call_b", "content": "[]"}], "preceeding message"),
        ([CALLS_A, {"role": "user", "content": "well?"}], "must be followed by tool messages"),
        ([CALLS_A], "must be followed by tool messages"),
    ],
)
def test_an_answer_without_its_call_is_refused_and_a_call_without_its_answer(
    client: httpx.Client, said: list[dict[str, Any]], why: str
) -> None:
    answer = ask(client, "hello", messages=[*_body("hello")["messages"], *said])
    assert (answer.status_code, why in answer.text) == (400, True)


def test_tools_answers_in_words_once_it_has_a_result(client: httpx.Client) -> None:
    result = {"role": "tool", "tool_call_id": "call_a", "content": "[]"}
    answer = ask(client, "tools", messages=[*_body("tools")["messages"], CALLS_A, result])
    assert said(answer) == "".join(TEXT)


@pytest.mark.parametrize("name", ["cut", "cut-first"])
def test_cut_closes_the_connection_without_an_end(client: httpx.Client, name: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        ask(client, name)


def test_truncated_ends_the_body_politely_but_says_neither_finish_nor_done(client: httpx.Client) -> None:
    answer = ask(client, "truncated")
    assert "Hel" in answer.text
    assert "[DONE]" not in answer.text
    assert '"finish_reason":"' not in answer.text


def test_rubbish_bad_chunk_empty_and_error_in_stream_are_answers_of_status_200(
    client: httpx.Client,
) -> None:
    answers = {name: ask(client, name) for name in ("rubbish", "bad-chunk", "empty", "error-in-stream")}
    assert {answer.status_code for answer in answers.values()} == {200}
    assert answers["rubbish"].text.startswith("<html>")
    assert chunks(answers["empty"]) == []
    assert chunks(answers["error-in-stream"])[-1]["error"]["type"] == "server_error"
    with pytest.raises(json.JSONDecodeError):
        chunks(answers["bad-chunk"])


@pytest.mark.parametrize("name", ["hang", "hang-midway", "endless"])
def test_a_client_that_gives_up_is_noticed(name: str) -> None:
    with FakeModel() as alone:
        with pytest.raises(httpx.ReadTimeout):
            _read_for(alone, name, seconds=0.2)
        alone.wait_for_disconnects(1)
        assert [request.model for request in alone.requests] == [name]


def _read_for(model: FakeModel, name: str, *, seconds: float) -> None:
    """Read until nothing comes for so long, or (an endless answer) until enough has come."""
    headers = {"authorization": "Bearer k"}
    with httpx.stream(
        "POST", f"{model.base_url}/chat/completions", json=_body(name), headers=headers, timeout=seconds
    ) as answer:
        for seen, _ in enumerate(answer.iter_raw()):
            if name == "endless" and seen > 3:
                raise httpx.ReadTimeout("enough")


def test_fail_n_times_then_succeed_counts_per_name(client: httpx.Client) -> None:
    assert [ask(client, "fail-2:mine").status_code for _ in range(4)] == [500, 500, 200, 200]
    assert ask(client, "fail-2:yours").status_code == 500


def test_scripts_by_name_run_in_order_and_the_last_repeats(
    client: httpx.Client, model: FakeModel
) -> None:
    model.script(status(429, headers={"retry-after": "7"}), text("one"), text("two"), name="mine")
    first, *others = [ask(client, "script:mine") for _ in range(4)]
    assert (first.status_code, first.headers["retry-after"]) == (429, "7")
    assert [said(answer) for answer in others] == ["one", "two", "two"]
    assert ask(client, "script:unknown").status_code == 404


def test_queued_scripts_serve_requests_without_a_case(client: httpx.Client, model: FakeModel) -> None:
    model.script(text("queued"), Answer((End.CUT,)))
    assert said(ask(client, "gpt-5-mini")) == "queued"
    with pytest.raises(httpx.RemoteProtocolError):
        ask(client, "gpt-5-mini")
    assert said(ask(client, "gpt-5-mini")) == "".join(TEXT)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"stream": False}, 400),
        ({"messages": []}, 400),
        ({"messages": [{"role": "robot", "content": "Hi"}]}, 400),
        ({"messages": [{"role": "user", "content": None}]}, 400),
        ({"model": 1}, 400),
    ],
)
def test_a_body_that_openai_would_refuse_is_refused(
    client: httpx.Client, model: FakeModel, change: dict[str, Any], code: int
) -> None:
    known = len(model.refusals)
    assert ask(client, "plain", **change).status_code == code
    assert len(model.refusals) == known + 1


def test_wrong_path_method_key_and_json_are_refused(client: httpx.Client, model: FakeModel) -> None:
    assert client.post("/completions", json={}).status_code == 404
    assert client.get("/chat/completions").status_code == 405
    assert client.post("/chat/completions", content=b"{").status_code == 400
    assert client.post("/chat/completions", content=b"[]").status_code == 400
    keyless = httpx.post(f"{model.base_url}/chat/completions", json=_body("plain"))
    assert (keyless.status_code, keyless.json()["error"]["code"]) == (401, "invalid_api_key")
    with FakeModel(key="sk-right") as strict:
        wrong = {"authorization": "Bearer sk-wrong"}
        assert httpx.get(f"{strict.base_url}/models", headers=wrong).status_code == 401


def test_models_lists_the_cases(client: httpx.Client) -> None:
    listed = client.get("/models").json()
    assert [entry["id"] for entry in listed["data"]] == list(CASES)


def test_the_chart_draws_the_median_of_each_server_and_the_longest_bar_first() -> None:
    def line(peer: str, rate: float, clients: int = 8) -> str:
        row = {"peer": peer, "kind": "run", "clients": clients, "delay_ms": 0, "deltas_per_s": rate}
        return json.dumps(row)

    lines = [line("agno", 900), *(line("platform", rate) for rate in (1, 1800, 9000))]
    figures = chart.read([*lines, line("agno", 5, clients=1), line("somebody", 10**6)])
    assert figures == {(8, 0): {"agno": 900, "platform": 1800}}
    drawn = ElementTree.fromstring(chart.draw(figures))
    widths = [bar.get("width") for bar in drawn.iter() if bar.get("class") in ("p", "o")]
    assert widths == ["620", "310"]
    assert "1,800" in "".join(drawn.itertext())


# --- the provider clients -------------------------------------------------------------------------


def test_every_wire_is_measured_beside_a_bare_reader_of_the_same_stream() -> None:
    rows = provider_bench.run(deltas=20, repeats=1)
    assert {(row.wire, row.pace) for row in rows} == {
        (wire, pace) for wire in provider_bench.STREAMS for pace in ("paced", "burst")
    }
    assert {"demo", *provider_bench.STREAMS} == set(ProviderDialect.values)
    assert all(row.bare_ms > 0 and row.client_ms > 0 for row in rows)
    assert provider_bench.table(rows).count("| openai.responses |") == 2

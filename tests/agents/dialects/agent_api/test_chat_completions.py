"""Chat Completions against the running server: the real SDK, and bodies as other clients send them.

What counts is also what the model was sent.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from config.http import async_views
from conversations.models import Message, Run
from prompts.endpoints import routing
from prompts.models import ModelMapping
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text, tool_calls
from tests.support.pictures import picture

pytestmark = pytest.mark.once

Scripted = Callable[..., ScriptedModel]
PATH = "/v1/chat/completions"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": PARAMETERS,
    },
}
USER: Any = {"role": "user", "content": "chest"}


class Plan(BaseModel):
    """A plan of so many sets."""

    name: str
    sets: int


@pytest.fixture
def sdk(client: Client) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{client.url}/v1", api_key=client.token, max_retries=0) as made:
        yield made


@pytest.fixture
def model(scripted: Scripted, provider: FakeModel) -> Callable[..., Model]:
    """A model of the loopback provider that answers so; without answers it says hello."""

    def make(*answers: Any) -> Model:
        name = uuid4().hex
        provider.script(*(answers or (text("Hel", "lo"),)), name=name)
        return Model(scripted(f"script:{name}").name, f"script:{name}", provider)

    return make


class Model:
    """A scripted model, and what it was sent."""

    def __init__(self, name: str, upstream: str, provider: FakeModel) -> None:
        self.name = name
        self._upstream, self._provider = upstream, provider

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request."""
        return self._provider.requests_for(self._upstream)[-1].body

    @property
    def messages(self) -> list[Any]:
        """What it was told after the agent's own prompt."""
        first, *rest = self.sent["messages"]
        assert first["role"] == "system"
        return list(rest)


Make = Callable[..., Model]


def post(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    response = client.http.post(PATH, json=body)
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


def run_of(completion: dict[str, Any]) -> Run:
    return Run.objects.get(pk=completion["id"].removeprefix("chatcmpl-"))


# --- the openai SDK -------------------------------------------------------------------------------


def test_create(sdk: OpenAI, model: Make) -> None:
    made = model()
    completion = sdk.chat.completions.create(
        model=made.name,
        messages=[{"role": "system", "content": "Be a pirate."}, {"role": "user", "content": "hi"}],
        temperature=0.5,
        max_completion_tokens=50,
        stop=["END"],
        seed=7,
    )
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("Hello", "stop")
    assert completion.model == made.name
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.total_tokens) == (11, 19)
    assert made.messages == [
        {"role": "system", "content": "Be a pirate."},
        {"role": "user", "content": "hi"},
    ]
    asked = {key: made.sent[key] for key in ("temperature", "max_tokens", "stop", "seed")}
    assert asked == {"temperature": 0.5, "max_tokens": 50, "stop": ["END"], "seed": 7}


def test_the_other_base_url_is_the_same(sdk: OpenAI, client: Client) -> None:
    other = sdk.with_options(base_url=f"{client.url}/compatible-mode/v1")
    assert other.chat.completions.create(model="demo", messages=[USER]).choices[0].message.content
    assert other.models.list().to_dict() == sdk.models.list().to_dict()


def test_stream(sdk: OpenAI, model: Make) -> None:
    asked: Any = {"model": model(text("Hel", "lo")).name, "messages": [USER], "stream": True}
    chunks = list(sdk.chat.completions.create(**asked, stream_options={"include_usage": True}))
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert deltas[0].role == "assistant"
    assert [delta.content for delta in deltas[1:-1]] == ["Hel", "lo"]
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]][-1] == "stop"
    assert (chunks[-1].choices, chunks[-1].usage and chunks[-1].usage.total_tokens) == ([], 19)
    without = list(sdk.chat.completions.create(**asked))
    assert all(chunk.choices for chunk in without)


def test_the_stream_on_the_wire(client: Client) -> None:
    with client.http.stream("POST", PATH, json={"messages": [USER], "stream": True}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        raw = response.read().decode()
    blocks = [block for block in raw.split("\n\n") if block and not block.startswith(":")]
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    assert blocks[-1] == "data: [DONE]"
    assert raw.endswith("data: [DONE]\n\n")


def test_the_stream_helper(sdk: OpenAI) -> None:
    with sdk.chat.completions.stream(model="demo", messages=[USER]) as stream:
        kinds = {event.type for event in stream}
        whole = stream.get_final_completion()
    assert whole.choices[0].message.content
    assert {"chunk", "content.delta", "content.done"} <= kinds


def test_tools_go_round(sdk: OpenAI, model: Make) -> None:
    made = model(tool_calls(("call_1", "get_weather", '{"city": "Ulm"}')), text("21 °C in Ulm."))
    said: list[Any] = [{"role": "user", "content": "weather?"}]
    asked = sdk.chat.completions.create(model=made.name, messages=said, tools=[TOOL])
    [choice] = asked.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    [call] = choice.message.tool_calls or []
    assert call.type == "function"
    assert (call.id, json.loads(call.function.arguments)) == ("call_1", {"city": "Ulm"})
    said += [choice.message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "21 °C"}]
    answer = sdk.chat.completions.create(model=made.name, messages=said, tools=[TOOL])
    assert answer.choices[0].message.content == "21 °C in Ulm."
    function = {"name": "get_weather", "arguments": '{"city":"Ulm"}'}
    assert made.messages == [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "21 °C", "tool_call_id": "call_1"},
    ]
    assert TOOL["function"] in [tool["function"] for tool in made.sent["tools"]]


def test_calls_are_streamed_one_by_one(sdk: OpenAI, model: Make) -> None:
    made = model(
        tool_calls(("a", "get_weather", '{"city": "Ulm"}'), ("b", "get_weather", '{"city": "Bonn"}'))
    )
    with sdk.chat.completions.stream(model=made.name, messages=[USER], tools=[TOOL]) as stream:
        whole = stream.get_final_completion()
    calls = whole.choices[0].message.tool_calls or []
    assert [(call.id, call.function.arguments) for call in calls] == [
        ("a", '{"city":"Ulm"}'),
        ("b", '{"city":"Bonn"}'),
    ]
    assert whole.choices[0].finish_reason == "tool_calls"


def test_the_server_s_own_tools_run_inside(sdk: OpenAI, client: Client) -> None:
    completion = sdk.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "练胸有什么动作？"}]
    )
    [choice] = completion.choices
    assert choice.message.content
    assert (choice.message.tool_calls, choice.finish_reason) == (None, "stop")
    frames = client.watch(completion.id.removeprefix("chatcmpl-"), validate=False)
    path = f"/api/v1/agent/runs/{completion.id}/events?dialect=text"
    assert "tool_start" in client.http.get(path).text
    assert frames[-1].event == "done"


@pytest.mark.parametrize(
    ("choice", "sent", "offered"),
    [
        ("required", "required", ["get_weather", "now"]),
        ({"type": "function", "function": {"name": "now"}}, "now", ["get_weather", "now"]),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "now"}}],
                },
            },
            "required",
            ["now"],
        ),
        ("none", None, []),
    ],
)
def test_the_model_is_told_which_tool_to_call(
    client: Client, model: Make, choice: Any, sent: str | None, offered: list[str]
) -> None:
    """Beside a call that is forced the server's own tools are not offered."""
    called = tool_calls(("c", "now", "{}"))
    made = model(text("no") if choice == "none" else called)
    now = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
    told = post(
        client,
        {"model": made.name, "messages": [USER], "tools": [TOOL, now], "tool_choice": choice},
    )
    assert told["choices"][0]["finish_reason"] == ("stop" if choice == "none" else "tool_calls")
    chosen = made.sent.get("tool_choice")
    assert (chosen["function"]["name"] if isinstance(chosen, dict) else chosen) == sent
    assert [tool["function"]["name"] for tool in made.sent.get("tools", ())] == offered


def test_parse_gives_the_form(sdk: OpenAI, model: Make) -> None:
    made = model(text('{"name": "Legs", "sets": 3}'))
    completion = sdk.chat.completions.parse(model=made.name, messages=[USER], response_format=Plan)
    assert completion.choices[0].message.parsed == Plan(name="Legs", sets=3)
    form = made.sent["response_format"]["json_schema"]["schema"]
    assert list(form["properties"]) == ["name", "sets"]


def test_images(sdk: OpenAI) -> None:
    image = base64.b64encode(picture("PNG", (32, 20))).decode()
    parts: Any = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
    ]
    made = sdk.chat.completions.create(model="demo", messages=[{"role": "user", "content": parts}])
    assert "32 × 20" in str(made.choices[0].message.content)


def test_an_image_reaches_a_model_that_sees(client: Client, model: Make) -> None:
    made = model()
    ModelMapping.objects.filter(key=made.name.removeprefix("global:")).update(supports_vision=True)
    routing.clear_cache()
    image = f"data:image/png;base64,{base64.b64encode(picture('PNG', (32, 20))).decode()}"
    parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": image}}]
    post(client, {"model": made.name, "messages": [{"role": "user", "content": parts}]})
    assert made.messages == [{"role": "user", "content": parts}]


def test_the_reasoning_is_beside_the_text(client: Client, scripted: Scripted) -> None:
    told = post(client, {"model": scripted("reasoning").name, "messages": [USER]})
    assert told["choices"][0]["message"]["reasoning_content"] == "Let me think."


@pytest.mark.parametrize(
    ("model_name", "finish"), [("length", "length"), ("content-filter", "content_filter")]
)
def test_why_an_answer_ended(client: Client, scripted: Scripted, model_name: str, finish: str) -> None:
    told = post(client, {"model": scripted(model_name).name, "messages": [USER]})
    assert told["choices"][0]["finish_reason"] == finish


def test_a_refusal(client: Client, scripted: Scripted) -> None:
    told = post(client, {"model": scripted("refusal").name, "messages": [USER]})
    message = told["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "I can't.")


# --- what is kept ---------------------------------------------------------------------------------


def test_each_request_has_a_thread_of_its_own(client: Client) -> None:
    body = {"model": "demo", "messages": [USER], "metadata": {"order": "7"}}
    one, two = run_of(post(client, body)), run_of(post(client, body))
    assert one.thread_id != two.thread_id
    assert client.run(one.pk.hex)["metadata"] == {"order": "7"}
    assert client.run(f"chatcmpl-{one.pk.hex}")["run_id"] == one.pk.hex


def test_what_is_not_to_be_stored_is_gone_afterwards(client: Client) -> None:
    secret = uuid4().hex
    body = {"model": "demo", "messages": [{"role": "user", "content": secret}]}
    kept = run_of(post(client, body | {"store": True}))
    assert Message.objects.filter(run_id=kept.pk, content=secret).exists()
    gone = post(client, body | {"store": False})["id"].removeprefix("chatcmpl-")
    assert not Message.objects.filter(run_id=gone).exists()
    found = client.http.get("/api/v1/agent/history/search", params={"q": secret}).json()
    assert gone not in json.dumps(found)
    [thread] = client.http.get("/api/v1/agent/threads").json()["threads"]
    assert thread["id"] == str(kept.thread_id)
    assert client.http.get(f"/api/v1/agent/runs/{gone}").status_code == 404


# --- other clients --------------------------------------------------------------------------------


def test_langchain_s_structured_output_by_function_calling(client: Client, model: Make) -> None:
    """ChatOpenAI 1.7: `with_structured_output(Plan, method="function_calling").invoke("a plan")`."""
    made = model(tool_calls(("call_1", "Plan", '{"name": "Legs", "sets": 3}')))
    function = {"name": "Plan", "description": Plan.__doc__, "parameters": Plan.model_json_schema()}
    told = post(
        client,
        {
            "messages": [{"content": "a plan", "role": "user"}],
            "model": made.name,
            "parallel_tool_calls": False,
            "tool_choice": {"type": "function", "function": {"name": "Plan"}},
            "tools": [{"type": "function", "function": function}],
        },
    )
    [call] = told["choices"][0]["message"]["tool_calls"]
    assert Plan.model_validate_json(call["function"]["arguments"]) == Plan(name="Legs", sets=3)
    assert [tool["function"]["name"] for tool in made.sent["tools"]] == ["Plan"]
    assert made.sent["tool_choice"] == {"type": "function", "function": {"name": "Plan"}}
    assert made.sent["parallel_tool_calls"] is False


def test_litellm_brings_back_what_it_was_told(client: Client, model: Make) -> None:
    """litellm 1.83: `completion(model="openai/…", messages=[…, response.choices[0].message])`."""
    made = model(text("Again."))
    message: dict[str, Any] = {
        "content": "Legs.",
        "role": "assistant",
        "tool_calls": None,
        "function_call": None,
        "annotations": [],
        "provider_specific_fields": {"refusal": None},
    }
    told = post(
        client,
        {
            "messages": [USER, message, {"role": "user", "content": "again"}],
            "model": made.name,
            "max_tokens": 100,
            "user": "somebody",
        },
    )
    assert told["choices"][0]["message"]["content"] == "Again."
    assert made.messages == [
        USER,
        {"role": "assistant", "content": "Legs."},
        {"role": "user", "content": "again"},
    ]
    assert made.sent["max_tokens"] == 100


def test_pydantic_ai_s_chat_model(client: Client, model: Make) -> None:
    made = model(
        tool_calls(("call_1", "weather", '{"city": "Ulm"}')),
        tool_calls(("call_2", "final_result", '{"name": "Run", "sets": 1}')),
    )

    def weather(city: str) -> str:
        return f"Sun in {city}"

    async def ask() -> Plan:
        async with AsyncOpenAI(base_url=f"{client.url}/v1", api_key=client.token) as opened:
            chat = OpenAIChatModel(made.name, provider=OpenAIProvider(openai_client=opened))
            agent = Agent(chat, output_type=Plan, instructions="Be brief.", tools=[weather])
            return (await agent.run("a plan")).output

    assert asyncio.run(ask()) == Plan(name="Run", sets=1)
    assert {"role": "system", "content": "Be brief."} in made.messages
    assert made.messages[-1] == {"role": "tool", "content": "Sun in Ulm", "tool_call_id": "call_1"}
    assert {tool["function"]["name"] for tool in made.sent["tools"]} == {"weather", "final_result"}
    assert made.sent["tool_choice"] == "required"


# --- what goes wrong ------------------------------------------------------------------------------


def test_refusals_before_the_run(sdk: OpenAI) -> None:
    asked: Any = {"model": "demo", "messages": [USER]}
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        sdk.chat.completions.create(**asked, n=2)
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "n")
    assert "n is not supported" in refused.value.message
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.chat.completions.create(**asked | {"model": "no-such-model"}, stream=True)
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.AuthenticationError):
        sdk.with_options(api_key="nonsense").chat.completions.create(**asked)


@pytest.mark.parametrize(
    ("upstream", "raised", "code", "again"),
    [
        ("status-400", openai.UnprocessableEntityError, "provider_bad_request", "false"),
        ("status-401", openai.InternalServerError, "provider_auth_error", "false"),
        ("status-429", openai.RateLimitError, "provider_rate_limited", "true"),
    ],
)
def test_a_run_that_fails_has_a_status(
    sdk: OpenAI,
    scripted: Scripted,
    upstream: str,
    raised: type[openai.APIStatusError],
    code: str,
    again: str,
) -> None:
    name = scripted(upstream).name
    with pytest.raises(raised) as failed:
        sdk.chat.completions.create(model=name, messages=[USER])
    assert failed.value.code == code
    assert failed.value.response.headers["x-should-retry"] == again
    assert failed.value.response.json()["request_id"] == failed.value.response.headers["x-request-id"]


def test_a_run_that_fails_in_its_stream_ends_it_with_an_error(
    sdk: OpenAI, client: Client, scripted: Scripted
) -> None:
    asked: Any = {"model": scripted("cut").name, "messages": [USER], "stream": True}
    chunks = iter(sdk.chat.completions.create(**asked))
    assert [next(chunks).choices[0].delta.content for _ in range(3)] == ["", "Hel", "lo"]
    with pytest.raises(openai.APIError) as failed:
        next(chunks)
    assert failed.value.code == "provider_stream_interrupted"
    raw = client.http.post(PATH, json=asked).text
    last = [block for block in raw.split("\n\n") if block][-1]
    assert json.loads(last.removeprefix("data: ")).keys() == {"error"}
    assert "[DONE]" not in raw


def test_a_long_answer_is_begun_with_blanks(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HEARTBEAT_S, settings.DEMO_TOKEN_S = 0.002, 0.01
    monkeypatch.setattr(async_views, "HELD_S", 0.05)
    told = client.http.post(PATH, json={"model": "demo", "messages": [USER]})
    assert told.content.startswith(b" ")
    assert told.json()["choices"][0]["finish_reason"] == "stop"


def test_a_client_that_leaves_ends_its_run(client: Client, settings: Any) -> None:
    settings.DEMO_TOKEN_S = 0.2
    body = {"model": "demo", "messages": [USER], "stream": True}
    with client.http.stream("POST", PATH, json=body) as response:
        first = next(line for line in response.iter_lines() if line.startswith("data: "))
    run_id = json.loads(first[6:])["id"].removeprefix("chatcmpl-")
    assert client.wait_for(run_id, "cancelled", "completed")["status"] == "cancelled"


def test_verbosity_is_refused_by_its_name_where_the_model_has_no_word_for_it(client: Client) -> None:
    body = {"model": "demo", "messages": [USER], "verbosity": "low"}
    refused = client.http.post(PATH, json=body)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (
        422,
        "unsupported_parameter",
        "verbosity",
    )
    large = client.http.post(PATH, content=b" " * (33 * 1024 * 1024))
    told = "The request body is too large: at most 33,554,432 bytes are taken here."
    assert (large.status_code, large.json()["error"]["message"]) == (413, told)


def left(client: Client, body: Any, **headers: str) -> Run:
    """The run that a client has posted, and hung up on as soon as its run spoke."""
    host, content = httpx.URL(client.url).netloc.decode(), json.dumps(body)
    named = {"Host": host, "Authorization": f"Bearer {client.token}"} | headers
    named |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    address, port = host.split(":")
    with socket.create_connection((address, int(port)), timeout=30) as connection:
        connection.sendall(f"POST {PATH} HTTP/1.1\r\n{head}\r\n{content}".encode())
        until = time.monotonic() + 30
        while not (found := list(Run.objects.filter(owner=client.user))):
            assert time.monotonic() < until
            time.sleep(0.01)
        run: Run = found[0]
        assert client.poll(run.pk.hex)["events"]
    return run


def test_a_client_that_waits_no_longer_ends_its_run(client: Client, settings: Any) -> None:
    settings.DEMO_TOKEN_S = 0.3
    run = left(client, {"model": "demo", "messages": [USER]})
    assert client.wait_for(run.pk.hex, "cancelled", "completed")["status"] == "cancelled"


def test_with_a_key_the_run_goes_on_and_is_started_once(client: Client, settings: Any) -> None:
    settings.DEMO_TOKEN_S = 0.05
    body = {"model": "demo", "messages": [USER]}
    key = {"Idempotency-Key": uuid4().hex}
    run = left(client, body, **key)
    settings.DEMO_TOKEN_S = 0.01
    again = client.http.post(PATH, json=body, headers=key).json()
    assert again["choices"][0]["message"]["content"]
    assert again["id"] == f"chatcmpl-{run.pk.hex}"
    assert Run.objects.filter(owner=client.user).count() == 1
    changed = client.http.post(PATH, json=body | {"seed": 1}, headers=key)
    assert (changed.status_code, changed.json()["error"]["code"]) == (409, "run_id_already_used")


def test_many_that_wait_for_their_answer_keep_nobody_out(client: Client, settings: Any) -> None:
    """A POST is over for who counts them once its run is accepted."""
    settings.DEMO_TOKEN_S, settings.POSTS_AT_ONCE = 0.1, 2
    body = {"model": "demo", "messages": [USER]}
    answers: list[int] = []

    def ask() -> None:
        answers.append(
            httpx.post(url, json=body, headers=headers, timeout=60, trust_env=False).status_code
        )

    url, headers = client.url + PATH, dict(client.http.headers)
    waiting = [threading.Thread(target=ask) for _ in range(3)]
    for place, thread in enumerate(waiting, 1):
        thread.start()
        until = time.monotonic() + 10
        while Run.objects.filter(owner=client.user).count() < place:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert answers == []
    settings.DEMO_TOKEN_S = 0
    for thread in waiting:
        thread.join(60)
    assert answers == [200, 200, 200]


# --- models ---------------------------------------------------------------------------------------


def test_models_are_those_that_the_caller_may_use(
    sdk: OpenAI, client: Client, scripted: Scripted
) -> None:
    name = scripted("hello").name
    hidden = scripted("hello").name.removeprefix("global:")
    ModelMapping.objects.filter(key=hidden).update(required_tier="nobody-has-it")
    routing.clear_cache()
    listed = sdk.models.list()
    ours = client.http.get("/api/v1/llm/models").json()["data"]
    assert [one.id for one in listed.data] == [one["scope_key"] for one in ours]
    key = name.removeprefix("global:")
    assert hidden not in [one.id for one in listed.data]
    for asked in (key, name):
        found = sdk.models.retrieve(asked)
        assert (found.id, found.object, found.owned_by) == (key, "model", "fake")
        assert abs(found.created - time.time()) < 600
    for unknown in (hidden, "no-such-model"):
        with pytest.raises(openai.NotFoundError) as refused:
            sdk.models.retrieve(unknown)
        assert (refused.value.code, refused.value.param) == ("model_not_found", "model")

"""How an answer is to be made: what a request asks before what the mapping says, on every wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from agents.dialects import run_agent_input, text_run
from agents.dialects.ag_ui import dialect as ag_ui
from agents.dialects.agent_api import dialect as agent_api
from agents.dialects.openai_responses import dialect as responses
from agents.providers.base import ChatMessage, ReasoningBlock, ToolCall
from agents.providers.generation_parameters import model_request
from agents.requests import Generation, RunRequest
from config.errors import InvalidRequest
from prompts.admin.generation import FIELDS, CandidateForm
from prompts.endpoints.routing import Candidate
from prompts.models import Endpoint, ModelCandidate, ModelMapping
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel
from tests.support.fakes.wires import WIRES

pytestmark = pytest.mark.once

MAPPED = Candidate(
    7,
    "fake",
    "openai.chat_completions",
    "http://x",
    "m",
    "",
    0.1,
    500,
    top_p=0.2,
    frequency_penalty=0.3,
    presence_penalty=0.4,
    stop=("END",),
    seed=5,
    reasoning="low",
)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ASKED = {
    "temperature": 0.5,
    "topP": 0.9,
    "frequencyPenalty": 0.1,
    "presence_penalty": -1,
    "maxTokens": 100.0,
    "stop": "STOP",
    "seed": 7,
    "reasoningEffort": "high",
    "reasoningBudget": 2048,
}
WANTED = Generation(0.5, 0.9, 0.1, -1, 100, ("STOP",), 7, SCHEMA, "high", 2048)
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}


def text_request(**more: Any) -> RunRequest:
    return text_run.parse({"model": "m", "text": "Hi."} | more, request_id="r")


def agui(dialect: Any, props: Any) -> RunRequest:
    body = {
        "threadId": str(uuid4()),
        "runId": "1",
        "messages": [{"id": "1", "role": "user", "content": "Hi."}],
        "forwardedProps": props,
    }
    found: RunRequest = dialect.parse(body, request_id="r")
    return found


def test_a_request_says_how_its_answer_is_made_in_every_dialect_that_can() -> None:
    snake = {
        "temperature": 0.5,
        "top_p": 0.9,
        "frequency_penalty": 0.1,
        "presence_penalty": -1,
        "max_tokens": 100,
        "stop": ["STOP"],
        "seed": 7,
        "reasoning_effort": "high",
        "reasoning_budget": 2048,
    }
    run = text_request(generation=snake, response_format=FORMAT)
    assert (run.generation, run.result_mode) == (WANTED, "raw_passthrough")
    for dialect in (run_agent_input, ag_ui):
        props = {"generation": ASKED, "responseFormat": FORMAT}
        assert agui(dialect, props).generation == WANTED
        assert agui(dialect, {"generation": ASKED, "response_format": FORMAT}).generation == WANTED
        assert agui(dialect, "anything").generation == Generation()
    body = {
        "input": "Hi.",
        "reasoning": {"effort": "xhigh"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
        "max_output_tokens": 100,
    }
    asked = responses.parse(body, request_id="r").generation
    assert asked == Generation(max_tokens=100, json_schema=SCHEMA, reasoning="high")
    said = {"role": "user", "content": [{"type": "text", "text": "Hi."}]}
    body = {"input": [said], "stop": "STOP", "seed": 7, "top_p": 0.9}
    given = agent_api.parse(body, request_id="r").generation
    assert given == Generation(top_p=0.9, stop=("STOP",), seed=7)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": 3},
        {"temperature": "0.5"},
        {"top_p": -0.1},
        {"max_tokens": 0},
        {"max_tokens": 1.5},
        {"stop": [""]},
        {"stop": ["x"] * 17},
        {"seed": 2**40},
        {"reasoning_effort": "huge"},
        {"reasoning_budget": -1},
        {"temprature": 1},
        7,
    ],
)
def test_a_parameter_that_cannot_be_is_refused_with_its_place(wrong: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        text_request(generation=wrong)
    assert caught.value.facts["errors"][0]["loc"][:2] == ["body", "generation"]
    for dialect in (run_agent_input, ag_ui):
        with pytest.raises(InvalidRequest) as caught:
            agui(dialect, {"generation": wrong})
        assert caught.value.facts["errors"][0]["loc"][:3] == ["body", "forwardedProps", "generation"]


@pytest.mark.parametrize(
    "wrong",
    [
        "json",
        {"type": "xml"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"schema": {"type": "array"}}},
        {"type": "json_schema", "schema": {"type": "object", "title": "x" * 70_000}},
    ],
)
def test_a_form_that_cannot_be_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        agui(ag_ui, {"responseFormat": wrong})
    assert caught.value.error_code == "invalid_response_format"


def test_mended_words_and_a_form_exclude_each_other() -> None:
    with pytest.raises(InvalidRequest) as caught:
        text_request(response_format=FORMAT, result_mode="xml_plaintext")
    assert caught.value.error_code == "invalid_response_format"
    assert text_request(response_format={"type": "text"}, result_mode="auto").result_mode == "auto"


def test_the_request_goes_before_the_mapping_but_never_past_its_limit() -> None:
    mapped = model_request(MAPPED, Generation(), (), (), raw=False)
    assert (mapped.temperature, mapped.top_p, mapped.max_tokens, mapped.stop) == (
        0.1,
        0.2,
        500,
        ("END",),
    )
    assert (mapped.frequency_penalty, mapped.presence_penalty, mapped.seed) == (0.3, 0.4, 5)
    assert (mapped.reasoning, mapped.reasoning_budget) == ("low", None)
    wanted = Generation(0.0, 1.0, 0.0, 0.0, 9_000, ("X",), 0, SCHEMA, reasoning_budget=99)
    asked = model_request(MAPPED, wanted, (), (), raw=False)
    assert (asked.temperature, asked.top_p, asked.max_tokens, asked.stop) == (0.0, 1.0, 500, ("X",))
    assert (asked.frequency_penalty, asked.presence_penalty, asked.seed) == (0.0, 0.0, 0)
    assert (asked.reasoning, asked.reasoning_budget, asked.json_schema) == (None, 99, SCHEMA)


EFFORTS: dict[str, list[dict[str, Any]]] = {
    "openai.chat_completions": [{"reasoning_effort": "high", "max_completion_tokens": 9_000}],
    "openai.responses": [{"reasoning": {"summary": "auto", "effort": "high"}}],
    "anthropic.messages": [
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
    ],
    "gemini.generate_content": [
        {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048}},
        {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}},
    ],
}


@pytest.mark.parametrize("wire", WIRES)
def test_reasoning_reaches_the_provider_from_the_mapping_and_from_the_request(wire: str) -> None:
    mapped = replace(
        MAPPED, dialect=wire, reasoning="high", reasoning_budget=2048, max_tokens=9_000, temperature=None
    )
    plain = replace(mapped, reasoning="", reasoning_budget=None)
    wanted = Generation(reasoning="high", reasoning_budget=2048)
    for candidate, asked in ((mapped, Generation()), (plain, wanted)):
        bodies = bodies_of(wire, candidate, asked)
        for body, expected in zip(bodies, EFFORTS[wire], strict=False):
            said = body.get("generationConfig", {}) | body
            assert {word: said.get(word) for word in expected} == expected


def bodies_of(wire: str, candidate: Candidate, asked: Generation) -> list[dict[str, Any]]:
    """The forms that the Host\'s request has on this wire."""
    from agents.providers.tool_names import ToolNames

    request = model_request(candidate, asked, (ChatMessage("user", "Hi."),), (), raw=False)
    return list(WIRES[wire].wire.forms("m", request, ToolNames.of(request)))


def test_reasoning_goes_back_to_who_made_it_and_to_nobody_else() -> None:
    thought = ReasoningBlock("anthropic.messages", {"type": "thinking"}, "7/m")
    call = ToolCall("c", "look", "{}")
    said = (ChatMessage("user", "Hi."), ChatMessage("assistant", "", (), (call,), reasoning=(thought,)))
    for candidate, kept in (
        (MAPPED, (thought,)),
        (replace(MAPPED, model="other"), ()),
        (replace(MAPPED, endpoint_id=8), ()),
    ):
        assert model_request(candidate, Generation(), said, (), raw=False).messages[1].reasoning == kept


def test_a_mapping_is_asked_as_staff_entered_it_and_the_request_overrules_it(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    from prompts.endpoints import routing
    from tests.support.fakes.fake_model import text as answer

    name = uuid4().hex
    provider.script(answer("One."), answer("Two."), name=name)
    model = scripted(f"script:{name}").name
    ModelCandidate.objects.filter(endpoint__name__startswith=model.removeprefix("global:")).update(
        temperature=0.2, top_p=0.3, max_tokens=50, stop=["END"], seed=3, presence_penalty=0.5
    )
    routing.clear_cache()
    for more in ({}, {"generation": {"temperature": 0.9, "max_tokens": 500, "seed": 4}}):
        run = client.start("Hi.", model, enable_exercise_search=False, **more)
        assert client.watch(run["run_id"])[-1].event == "completed"
    first, second = (request.body for request in provider.requests_for(f"script:{name}"))
    told = ("temperature", "top_p", "max_tokens", "stop", "seed", "presence_penalty")
    assert [first[word] for word in told] == [0.2, 0.3, 50, ["END"], 3, 0.5]
    assert [second[word] for word in told] == [0.9, 0.3, 50, ["END"], 4, 0.5]


@pytest.mark.parametrize(
    ("dialect", "entered", "refused"),
    [
        ("openai.chat_completions", {"seed": 1, "reasoning_effort": "low", "stop": "a,b"}, []),
        ("openai.chat_completions", {"reasoning_budget": 2048}, ["reasoning_budget"]),
        ("openai.chat_completions", {"stop": "a,b,c,d,e"}, ["stop"]),
        ("openai.responses", {"seed": 1, "stop": "a", "top_p": 0.5}, ["stop", "seed"]),
        ("anthropic.messages", {"temperature": 1.5, "top_p": 0.5}, ["temperature", "top_p"]),
        ("anthropic.messages", {"reasoning_budget": 512}, ["reasoning_budget"]),
        ("anthropic.messages", {"reasoning_budget": 4096, "max_tokens": 4096}, ["max_tokens"]),
        ("gemini.generate_content", {"frequency_penalty": 1, "reasoning_budget": 100}, []),
        ("demo", {"temperature": 1}, ["temperature"]),
        ("gemini.generate_content", {"temperature": 3, "top_p": 2}, ["temperature", "top_p"]),
    ],
)
def test_the_form_refuses_what_the_wire_of_the_endpoint_has_no_word_for(
    dialect: str, entered: dict[str, Any], refused: list[str]
) -> None:
    address = "" if dialect == "demo" else "https://api.example.com"
    endpoint = Endpoint.objects.create(
        name=uuid4().hex, provider="x", dialect=dialect, base_url=address, is_active=False
    )
    mapping = ModelMapping.objects.create(key=uuid4().hex, is_active=False)
    sent = {"position": 1, "endpoint": endpoint.pk, "model": "m"} | entered
    form = CandidateForm(sent, instance=ModelCandidate(mapping=mapping))
    assert [name for name in FIELDS if name in form.errors] == sorted(refused, key=FIELDS.index)


def test_images_go_by_address_where_the_endpoint_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.host import model_and_tool_calls as host_module
    from agents.providers.base import ImagePart
    from conversations import attachments

    async def there(bucket: str, path: str) -> bool:
        return path != "gone"

    monkeypatch.setattr(attachments, "exists", there)
    images = (ImagePart("image/png", stored="b/a/1.png"), ImagePart("image/png", stored="b/gone"))
    shown = asyncio.run(host_module._sign(images))
    assert [image.url.partition("?")[0].rpartition("/sign/")[2] for image in shown] == ["b/a/1.png"]

"""An answer in the form that was asked for: every wire is told it, and the answer is checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agents.json_schemas import helpers
from agents.providers.base import ChatMessage, Finished, ModelRequest, TextDelta
from agents.providers.tool_names import ToolNames
from prompts import app_settings
from prompts.models import AppSetting
from tests.support.client import Client, ScriptedModel, Seen, reply
from tests.support.fakes import fake_anthropic
from tests.support.fakes.fake_model import FakeModel, status, text
from tests.support.fakes.wires import SEARCH, WIRES, asked, stream
from tests.support.properties.deep_schemas import arrays, dear_to_compile, doubling

pytestmark = pytest.mark.once

SCHEMA = {
    "type": "object",
    "properties": {"sets": {"type": "integer", "minimum": 1}, "name": {"type": "string"}},
    "required": ["name", "sets"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "plan", "schema": SCHEMA}}
RIGHT = '{"name": "Squat", "sets": 3}'


@pytest.fixture
def flagged() -> Iterator[None]:
    """A wrong answer completes its run, with a flag."""
    app_settings.change("structured_output", "flag", by=None)
    app_settings.clear_cache()
    yield
    AppSetting.objects.filter(pk="structured_output").delete()
    app_settings.clear_cache()


@pytest.fixture
def ask(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> Callable[..., list[Seen]]:
    def run(*pieces: str, finish: str = "stop", form: Any = FORMAT) -> list[Seen]:
        name = uuid4().hex
        provider.script(text(*pieces, finish=finish), name=name)
        model = scripted(f"script:{name}").name
        started = client.start("A plan.", model, enable_exercise_search=False, response_format=form)
        frames = client.watch(started["run_id"])
        (sent,) = (request.body for request in provider.requests_for(f"script:{name}"))
        assert sent["response_format"]["type"] == "json_schema"
        told = json.dumps(sent["response_format"]["json_schema"]["schema"])
        assert told == json.dumps(form.get("json_schema", {"schema": {"type": "object"}})["schema"])
        return frames

    return run


def test_a_right_answer_completes_the_run_and_says_so(ask: Callable[..., list[Seen]]) -> None:
    frames = ask('{"name": "Squat",', ' "sets": 3}')
    assert reply(frames) == RIGHT
    assert frames[-1].data["metadata"]["structured_output"] == "ok"


@pytest.mark.parametrize(
    ("answer", "finish", "told"),
    [
        ("Do squats.", "stop", "it is no JSON"),
        ('{"name": "Squat", "sets": 0}', "stop", "$.sets: 0 is less than the minimum of 1"),
        ('{"name": "Squat"}', "stop", '$: "sets" is a required property'),
        ('{"name": "Squ', "length", "it was cut off at the limit of tokens, so it is no JSON"),
    ],
)
def test_a_wrong_answer_fails_the_run_and_says_what_is_wrong(
    ask: Callable[..., list[Seen]], answer: str, finish: str, told: str
) -> None:
    frames = ask(answer, finish=finish)
    assert (frames[-1].event, frames[-1].data["code"]) == ("error", "structured_output_invalid")
    assert told in frames[-1].data["message"]
    assert reply(frames) == answer


@pytest.mark.usefixtures("flagged")
def test_a_wrong_answer_may_pass_with_a_flag(ask: Callable[..., list[Seen]]) -> None:
    frames = ask("Do squats.")
    assert frames[-1].event == "completed"
    assert frames[-1].data["metadata"]["structured_output"] == "it is no JSON"


def test_any_object_can_be_asked_for(ask: Callable[..., list[Seen]]) -> None:
    assert ask('{"any": []}', form={"type": "json_object"})[-1].event == "completed"
    assert ask("[]", form={"type": "json_object"})[-1].data["code"] == "structured_output_invalid"


def test_the_demo_answers_in_the_form(client: Client) -> None:
    started = client.start("Squat", response_format=FORMAT, enable_exercise_search=False)
    frames = client.watch(started["run_id"])
    assert json.loads(reply(frames)) == {"name": "Squat", "sets": 1}
    assert frames[-1].data["metadata"]["structured_output"] == "ok"


# --- forms that would hold the server ------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is checked for a second at most."""
    monkeypatch.setattr(helpers, "LIMIT_S", 1.0)


@pytest.fixture
def answered(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> Callable[..., dict[str, Any]]:
    """Run what answers so in this form, and ask for /health all the time: the last event."""

    def run(schema: dict[str, Any], answer: str | None = None) -> dict[str, Any]:
        name = uuid4().hex
        provider.script(text(answer or ""), name=name)
        model = scripted(f"script:{name}").name if answer else "demo"
        form = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
        client.http.timeout = httpx.Timeout(3)
        run_id = client.start("A plan.", model, enable_exercise_search=False, response_format=form)[
            "run_id"
        ]
        while client.run(run_id)["status"] not in ("completed", "failed"):
            assert client.http.get("/health").status_code == 200
        return client.watch(run_id)[-1].data

    return run


def forms_of(schema: dict[str, Any], model: str = "demo") -> dict[str, dict[str, Any]]:
    """The body, by its path, that asks for an answer of this form."""
    message = {"role": "user", "content": "A plan."}
    agui = {"threadId": str(uuid4()), "runId": uuid4().hex, "messages": [message | {"id": "1"}]}
    form = {"type": "json_schema", "schema": schema, "name": "form"}
    return {
        "/api/v1/agent/runs": {"model": model, "text": "A plan.", "response_format": form},
        "/api/v1/agent/ag-ui": agui | {"forwardedProps": {"model": model, "responseFormat": form}},
        "/v1/responses": {"model": model, "input": "A plan.", "text": {"format": form}},
        "/v1/chat/completions": {
            "model": model,
            "messages": [message],
            "response_format": {"type": "json_schema", "json_schema": form},
        },
    }


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "object", "required": 7}, "7 is not of type"),
        ({"type": "object", "$ref": "http://127.0.0.1/x"}, "elsewhere"),
        ({"type": "object", "$ref": "#/$defs/gone"}, "gone"),
        ({"type": "object", "patternProperties": {"(?=x)": {}}}, "regex"),
    ],
)
def test_a_form_that_cannot_be_used_is_refused_by_every_dialect(
    client: Client, schema: dict[str, Any], told: str
) -> None:
    for path, body in forms_of(schema).items():
        refused = client.http.post(path, json=body)
        assert refused.status_code in (400, 422), path
        assert told in refused.text
        assert "invalid_response_format" in refused.text


@pytest.mark.parametrize("levels", [18, 40])
def test_a_form_that_takes_too_long_to_compile_is_refused(
    client: Client, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "LIMIT_S", 0.3)  # within a second memory may end first
    body = forms_of(dear_to_compile(levels))["/api/v1/agent/runs"]
    with ThreadPoolExecutor() as threads:
        posted = threads.submit(client.http.post, "/api/v1/agent/runs", json=body)
        while not posted.done():
            assert client.http.get("/health", timeout=3).status_code == 200
    refused = posted.result()
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_response_format")
    assert "its schema takes too long to check" in refused.json()["detail"]


def test_a_form_that_doubles_with_each_level_is_answered(answered: Callable[..., Any]) -> None:
    assert answered(doubling(17), '{"a": 1}')["metadata"]["structured_output"] == "ok"
    wrong = answered(doubling(17), '{"a": "x"}')
    assert wrong["code"] == "structured_output_invalid"
    assert "does not fit the JSON Schema that was asked for: " in wrong["message"]


@pytest.mark.usefixtures("impatient")
def test_a_form_that_takes_too_long_to_check_fails_the_run_and_says_so(
    answered: Callable[..., Any],
) -> None:
    last = answered(doubling(40), '{"a": "x"}')
    assert (last["code"], last["message"]) == (
        "structured_output_invalid",
        "The answer could not be checked against the JSON Schema that was asked for: "
        "its schema takes too long to check.",
    )


@pytest.mark.usefixtures("impatient", "flagged")
def test_a_form_that_takes_too_long_to_check_may_pass_with_a_flag(answered: Callable[..., Any]) -> None:
    last = answered(doubling(40), '{"a": "x"}')
    assert last["metadata"]["structured_output"] == "its schema takes too long to check"


def test_the_demo_fills_a_form_as_far_as_an_answer_may_grow(answered: Callable[..., Any]) -> None:
    for levels in (3, 8):
        assert answered(arrays(levels))["code"] == "structured_output_invalid"
    assert answered(doubling(20))["metadata"]["structured_output"] == "ok"


def test_a_pattern_cannot_hold_the_server(answered: Callable[..., Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert "$.a: " in answered(schema, json.dumps({"a": "a" * 50_000 + "!"}))["message"]


# --- the wires -----------------------------------------------------------------------------------

TOLD: dict[str, Callable[[dict[str, Any]], Any]] = {
    "openai.chat_completions": lambda body: body["response_format"]["json_schema"]["schema"],
    "openai.responses": lambda body: body["text"]["format"]["schema"],
    "anthropic.messages": lambda body: body["output_config"]["format"]["schema"],
    "gemini.generate_content": lambda body: body["generationConfig"]["responseSchema"],
}


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_is_told_the_form(wire: str) -> None:
    request = asked(json_schema=SCHEMA)
    told = TOLD[wire](WIRES[wire].wire.forms("m", request, ToolNames.of(request))[0])
    assert (told["type"], set(told["properties"])) == ("object", {"name", "sets"})


@pytest.mark.parametrize("wire", WIRES)
def test_every_form_of_every_wire_is_a_request_that_its_provider_knows(wire: str) -> None:
    from tests.support.fakes import fake_gemini, fake_responses

    faults: dict[str, Callable[[dict[str, Any]], list[str]]] = {
        "anthropic.messages": fake_anthropic.faults,
        "gemini.generate_content": fake_gemini.faults,
        "openai.responses": fake_responses.faults,
    }
    faults_of = faults.get(wire, _none)
    for tools in ((), (SEARCH,)):
        for schema in (SCHEMA, {"type": "object"}):
            for effort in (None, "low"):
                request = asked(*tools, json_schema=schema, reasoning=effort)
                for body in WIRES[wire].wire.forms("m", request, ToolNames.of(request)):
                    assert faults_of(body) == []


def _none(body: dict[str, Any]) -> list[str]:
    return []


def test_an_older_anthropic_model_gives_its_answer_by_a_forced_tool() -> None:
    name = f"older-{uuid4().hex}"
    with fake_anthropic.FakeAnthropic() as provider:
        refused = fake_anthropic.status(400, kind="invalid_request_error")
        begun, pieces = fake_anthropic.tool(0, "toolu_1", "parley_answer", RIGHT)
        called = fake_anthropic.answer(begun, *pieces, reason="tool_use")
        provider.script(refused, refused, called, name=name)
        request = ModelRequest(
            messages=(ChatMessage("user", "A plan."),), json_schema=SCHEMA, temperature=0.5
        )
        got = stream(WIRES["anthropic.messages"].wire, provider.base_url, f"script:{name}", request)
        sent = [received.body for received in provider.requests_for(f"script:{name}")]
    assert json.loads(got.text) == json.loads(RIGHT)
    assert (got.finished.finish_reason, got.finished.tool_calls) == ("stop", ())
    assert "output_config" in sent[0]
    assert sent[2]["tool_choice"] == {"type": "any"}
    assert sent[2]["tools"][-1]["input_schema"] == SCHEMA
    assert [type(event) for event in got.events if isinstance(event, TextDelta | Finished)][
        -1
    ] is Finished


def test_a_server_that_knows_no_schemas_is_asked_for_json_and_told_the_schema() -> None:
    name = f"plain-{uuid4().hex}"
    with FakeModel() as provider:
        provider.script(status(400), text(RIGHT), name=name)
        request = ModelRequest(messages=(ChatMessage("user", "A plan."),), json_schema=SCHEMA)
        got = stream(WIRES["openai.chat_completions"].wire, provider.base_url, f"script:{name}", request)
        sent = [received.body for received in provider.requests_for(f"script:{name}")]
    assert got.text == RIGHT
    assert sent[1]["response_format"] == {"type": "json_object"}
    assert '"sets"' in sent[1]["messages"][0]["content"]

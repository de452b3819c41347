"""OpenAI's Responses API by its own SDK: what the client gets, and what the model was sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol
from uuid import UUID, uuid4

import openai
import pytest
from openai import OpenAI

from agents.tools import registry, web_search
from agents.tools.base import Tool
from config import database
from config.database import run_sync
from conversations import attachments
from conversations.admin import export
from conversations.models import Attachment, EventBatch, Interrupt, Message, Run, Thread
from conversations.upkeep import unstored_runs
from prompts import app_settings
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import Answer, FakeModel, text, tool_calls

pytestmark = pytest.mark.once

WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
CLOCK: Any = {"type": "function", "name": "clock", "parameters": {"type": "object"}, "strict": False}
OURS: Any = {"type": "mcp", "server_label": "parley", "server_url": "http://127.0.0.1/none"}
ECHO = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


@pytest.fixture
def sdk(client: Client) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{client.url}/v1", api_key=client.token, max_retries=0) as made:
        yield made


@pytest.fixture
def echoed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A tool of the server's, test.echo, and what it was called with."""
    words: list[str] = []

    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        words.append(arguments["word"])
        return {"said": arguments["word"]}

    tool = Tool("test.echo", "Echoes.", ECHO, call, idempotent=True, timeout_s=2)
    known = {**registry._by_name(), tool.name: tool}
    monkeypatch.setattr(registry, "_by_name", lambda: known)
    return words


class Ask(Protocol):
    def __call__(self, *answers: Answer) -> tuple[str, Callable[[], list[dict[str, Any]]]]: ...


@pytest.fixture
def ask(scripted: Callable[..., ScriptedModel], provider: FakeModel) -> Ask:
    """A model that answers so, and what it has been sent so far."""

    def script(*answers: Answer) -> tuple[str, Callable[[], list[dict[str, Any]]]]:
        name = uuid4().hex
        provider.script(*answers, name=name)
        model = f"script:{name}"
        return scripted(model).name, lambda: [
            one.body for one in provider.requests if one.model == model
        ]

    return script


def spoken(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """What a model was sent, without the system message of the prompts."""
    return [(said["role"], said["content"]) for said in body["messages"] if said["role"] != "system"]


def names(body: dict[str, Any]) -> list[str]:
    return sorted(tool["function"]["name"] for tool in body.get("tools", []))


# --- instructions -------------------------------------------------------------------------------


def test_instructions_are_a_system_message_after_the_prompts(sdk: OpenAI, ask: Ask) -> None:
    model, sent = ask(text("Arr."), text("Yes."))
    first = sdk.responses.create(model=model, input="Hi.", instructions="Talk like a PIRATE.")
    sdk.responses.create(model=model, input="And now?", previous_response_id=first.id)
    one, two = sent()
    [system] = [said["content"] for said in one["messages"] if said["role"] == "system"]
    assert system.endswith("Talk like a PIRATE.")
    assert not system.startswith("Talk like"), "the prompts come first"
    assert "CONTEXT_START" not in system
    assert first.instructions == "Talk like a PIRATE."
    assert "PIRATE" not in json.dumps(two), "OpenAI does not carry them over either"
    assert spoken(two) == [("user", "Hi."), ("assistant", "Arr."), ("user", "And now?")]


# --- which tools, and how -----------------------------------------------------------------------


def test_a_forced_function_is_alone_with_the_clients_tools(
    sdk: OpenAI, ask: Ask, echoed: list[str]
) -> None:
    call = tool_calls(("c1", "get_weather", '{"city": "Ulm"}'))
    for choice, said in (
        ("required", "required"),
        (
            {"type": "function", "name": "get_weather"},
            {"type": "function", "function": {"name": "get_weather"}},
        ),
    ):
        model, sent = ask(call)
        tools: Any = [WEATHER, CLOCK]
        made = sdk.responses.create(model=model, input="Ulm?", tools=tools, tool_choice=choice)  # type: ignore[call-overload]
        assert [item.type for item in made.output] == ["function_call"]
        [body] = sent()
        assert names(body) == ["clock", "get_weather"]
        assert body["tool_choice"] == said


def test_the_model_may_choose_among_all_of_them_unasked(
    sdk: OpenAI, ask: Ask, echoed: list[str]
) -> None:
    model, sent = ask(text("No."))
    sdk.responses.create(model=model, input="Ulm?", tools=[WEATHER])
    [body] = sent()
    assert {"get_weather", "test_echo"} <= set(names(body))
    assert "tool_choice" not in body
    weather = next(t for t in body["tools"] if t["function"]["name"] == "get_weather")
    assert weather["function"]["strict"] is True


def test_allowed_tools_are_all_that_is_offered(sdk: OpenAI, ask: Ask, echoed: list[str]) -> None:
    model, sent = ask(text("No."))
    allowed: Any = {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "clock"}],
    }
    sdk.responses.create(model=model, input="Ulm?", tools=[WEATHER, CLOCK], tool_choice=allowed)
    ours = allowed | {"tools": [{"type": "mcp", "server_label": "parley"}]}
    tools: Any = [WEATHER, OURS | {"allowed_tools": ["test.echo"]}]
    sdk.responses.create(model=model, input="Ulm?", tools=tools, tool_choice=ours)
    assert [names(body) for body in sent()] == [["clock"], ["test_echo"]]


def test_a_tool_of_the_server_can_be_forced_once(sdk: OpenAI, ask: Ask, echoed: list[str]) -> None:
    model, sent = ask(tool_calls(("c1", "test_echo", '{"word": "a"}')), text("Done."))
    choice: Any = {"type": "mcp", "server_label": "parley", "name": "test.echo"}
    made = sdk.responses.create(model=model, input="Go.", tools=[OURS, WEATHER], tool_choice=choice)
    assert made.output_text == "Done."
    one, two = sent()
    assert one["tool_choice"]["function"]["name"] == "test_echo"
    assert "get_weather" not in names(one)
    assert "tool_choice" not in two
    assert "get_weather" in names(two)
    other = choice | {"name": "no.such"}
    failed = sdk.responses.create(model=model, input="Go.", tools=[OURS], tool_choice=other)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error.type == "tool_not_offered"


def test_calls_come_one_at_a_time_also_from_a_model_that_makes_more(sdk: OpenAI, ask: Ask) -> None:
    calls = tool_calls(
        ("c1", "get_weather", '{"city": "Ulm"}'), ("c2", "get_weather", '{"city": "Bonn"}')
    )
    model, sent = ask(calls)
    made = sdk.responses.create(model=model, input="?", tools=[WEATHER], parallel_tool_calls=False)
    assert [item.call_id for item in made.output if item.type == "function_call"] == ["c1"]
    assert made.parallel_tool_calls is False
    assert sent()[0]["parallel_tool_calls"] is False
    both = sdk.responses.create(model=model, input="?", tools=[WEATHER])
    assert [item.call_id for item in both.output if item.type == "function_call"] == ["c1", "c2"]


def test_calls_of_the_servers_tools_are_counted(sdk: OpenAI, ask: Ask, echoed: list[str]) -> None:
    two = tool_calls(("c1", "test_echo", '{"word": "a"}'), ("c2", "test_echo", '{"word": "b"}'))
    model, sent = ask(two, text("Enough."))
    made = sdk.responses.create(model=model, input="Go.", max_tool_calls=1)
    assert echoed == ["a"]
    assert [item.type for item in made.output] == ["mcp_call", "message"]
    assert "test_echo" in names(sent()[0])
    assert names(sent()[1]) == []
    model, sent = ask(text("None."))
    sdk.responses.create(model=model, input="Go.", max_tool_calls=0, tools=[WEATHER])
    assert names(sent()[0]) == ["get_weather"]


def test_a_strict_tool_is_called_with_what_fits_alone(sdk: OpenAI, ask: Ask) -> None:
    wrong = tool_calls(("c1", "get_weather", '{"town": "Ulm"}'))
    model, sent = ask(wrong, tool_calls(("c2", "get_weather", '{"city": "Ulm"}')))
    choice: Any = {"type": "function", "name": "get_weather"}
    made = sdk.responses.create(model=model, input="Ulm?", tools=[WEATHER], tool_choice=choice)
    [call] = made.output
    assert call.type == "function_call"
    assert json.loads(call.arguments) == {"city": "Ulm"}
    again = sent()[1]
    assert again["tool_choice"] == sent()[0]["tool_choice"]
    assert again["messages"][-1]["role"] == "tool"
    assert "do not fit" in again["messages"][-1]["content"]
    loose: Any = WEATHER | {"strict": False}
    model, _ = ask(wrong)
    [call] = sdk.responses.create(model=model, input="Ulm?", tools=[loose]).output
    assert call.type == "function_call"
    assert json.loads(call.arguments) == {"town": "Ulm"}


def test_verbosity_reaches_a_provider_that_knows_it(sdk: OpenAI, ask: Ask) -> None:
    model, sent = ask(text("Yes."))
    sdk.responses.create(model=model, input="?", text={"verbosity": "low"})
    assert sent()[0]["verbosity"] == "low"
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        sdk.responses.create(model="demo", input="?", text={"verbosity": "low"})
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "text.verbosity")
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        sdk.responses.create(model=model, input="?", reasoning={"summary": "detailed"})
    assert refused.value.param == "reasoning.summary"


def test_a_conversation_that_must_not_be_shortened_fails(sdk: OpenAI, ask: Ask, settings: Any) -> None:
    settings.CONTEXT_TOKENS = 3_000
    model, sent = ask(text("word " * 4_000), text("Shortened."), text("Never."))
    first = sdk.responses.create(model=model, input="Much.")
    more: Any = {"model": model, "input": "Go on.", "previous_response_id": first.id}
    assert sdk.responses.create(**more).output_text == "Shortened."
    failed = sdk.responses.create(**more, truncation="disabled")
    assert failed.error is not None
    assert failed.error.type == "provider_context_exceeded"
    assert failed.truncation == "disabled"
    assert len(sent()) == 2


def test_the_offline_model_calls_what_it_must(sdk: OpenAI) -> None:
    choice: Any = {"type": "function", "name": "get_weather"}
    [call] = sdk.responses.create(
        model="demo", input="Hi.", tools=[CLOCK, WEATHER], tool_choice=choice
    ).output
    assert call.type == "function_call"
    assert call.name == "get_weather"
    [call] = sdk.responses.create(
        model="demo", input="Hi.", tools=[CLOCK], tool_choice="required"
    ).output
    assert call.type == "function_call"


def test_the_web_search_is_offered_where_it_is_set_up(
    sdk: OpenAI, ask: Ask, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    model, sent = ask(text("Yes."))
    settings.EXA_API_KEY = ""
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        sdk.responses.create(model=model, input="?", tools=[{"type": "web_search"}])
    assert (refused.value.code, refused.value.param) == ("tool_not_supported", "tools")

    async def has_key() -> bool:
        return True

    monkeypatch.setattr(web_search, "has_key", has_key)
    app_settings.change("web_search_enabled", True, by=None)
    try:
        sdk.responses.create(model=model, input="?", tools=[{"type": "web_search"}])
    finally:
        app_settings.change("web_search_enabled", False, by=None)
    assert "web_search_exa" in names(sent()[0])


# --- approvals, as openai-agents gives them -----------------------------------------------------


def test_a_tool_of_the_server_waits_for_the_clients_approval(
    sdk: OpenAI, ask: Ask, echoed: list[str]
) -> None:
    model, sent = ask(tool_calls(("c1", "test_echo", '{"word": "a"}')), text("Done."))
    tools: Any = [OURS | {"require_approval": "always"}]
    said: list[Any] = [{"role": "user", "content": "Go."}]
    asked = sdk.responses.create(model=model, input=said, tools=tools)
    request = asked.output[-1]
    assert request.type == "mcp_approval_request"
    assert request.server_label == "parley"
    assert echoed == []
    said += [item.to_dict() for item in asked.output]
    said.append({"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True})
    made = sdk.responses.create(model=model, input=said, tools=tools)
    assert made.output_text == "Done."
    assert echoed == ["a"]
    assert made.conversation == asked.conversation
    assert [role for role, _ in spoken(sent()[1])] == ["user", "assistant", "tool"]


def test_a_server_that_nobody_connected_is_refused(sdk: OpenAI) -> None:
    other: Any = OURS | {"server_label": "deepwiki"}
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        sdk.responses.create(model="demo", input="?", tools=[other])
    assert refused.value.code == "tool_not_supported"


# --- items by reference -------------------------------------------------------------------------


def test_an_answer_by_reference_is_told(sdk: OpenAI, ask: Ask) -> None:
    """Vercel's SDK sends its assistant's turns so, without `previous_response_id`."""
    model, sent = ask(text("First answer."), text("Second."))
    user = {"role": "user", "content": "First?"}
    first = sdk.responses.create(model=model, input=[user])  # type: ignore[list-item]
    said: Any = [
        user,
        {"type": "item_reference", "id": first.output[0].id},
        {"role": "user", "content": [{"type": "input_text", "text": "Second?"}]},
    ]
    second = sdk.responses.create(model=model, input=said)
    assert spoken(sent()[1]) == [
        ("user", "First?"),
        ("assistant", "First answer."),
        ("user", "Second?"),
    ]
    more = [
        *said,
        {"type": "item_reference", "id": second.output[0].id},
        {"role": "user", "content": "x"},
    ]
    sdk.responses.create(model=model, input=more)
    assert [role for role, _ in spoken(sent()[2])] == ["user", "assistant"] * 2 + ["user"]


def test_calls_by_reference_are_told_with_their_answers(
    sdk: OpenAI, ask: Ask, echoed: list[str]
) -> None:
    model, sent = ask(
        tool_calls(("c1", "test_echo", '{"word": "a"}')),
        tool_calls(("c2", "get_weather", '{"city": "Ulm"}')),
        text("Done."),
    )
    user: Any = {"role": "user", "content": "Go."}
    asked = sdk.responses.create(model=model, input=[user], tools=[WEATHER])
    ours, clients = asked.output
    assert (ours.type, clients.type) == ("mcp_call", "function_call")
    answer = {"type": "function_call_output", "call_id": clients.call_id, "output": "21"}  # type: ignore[union-attr]
    said: Any = [user, *({"type": "item_reference", "id": one.id} for one in asked.output), answer]
    assert sdk.responses.create(model=model, input=said, tools=[WEATHER]).output_text == "Done."
    told = sent()[2]["messages"]
    assert [one["role"] for one in told if one["role"] != "system"] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert [one["content"] for one in told if one["role"] == "tool"] == ['{"said":"a"}', "21"]


def test_what_is_not_the_accounts_is_no_reference(
    sdk: OpenAI, ask: Ask, make_client: Callable[[], Client]
) -> None:
    other = make_client()
    with OpenAI(base_url=f"{other.url}/v1", api_key=other.token, max_retries=0) as foreign:
        made = foreign.responses.create(model="demo", input="Mine.")
    for item_id in (made.output[-1].id, "msg_nothing", f"rs_reasoning-1-{uuid4().hex}", uuid4().hex):
        said: Any = [{"role": "user", "content": "a"}, {"type": "item_reference", "id": item_id}]
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            sdk.responses.create(model="demo", input=said)
        assert (refused.value.code, refused.value.param) == ("invalid_input", "input[1]")
    mine = sdk.responses.create(model="demo", input="chest")
    silent: Any = [{"type": "item_reference", "id": f"rs_reasoning-1-{mine.id.removeprefix('resp_')}"}]
    assert sdk.responses.create(
        model="demo", input=[*silent, {"role": "user", "content": "a"}]
    ).output_text


# --- what is not stored -------------------------------------------------------------------------


_ENDED = "SELECT FROM conversations_run WHERE id = %s FOR UPDATE"
_LONG_AGO = "UPDATE conversations_run SET finished_at = now() - interval '30 days' WHERE id = %s"


def forgotten(made: Any) -> Run:
    """The run of a response, after upkeep has looked at it as it would a minute later."""

    async def look() -> None:
        async with database.connection() as held:
            await held.execute(_LONG_AGO, (run_of(made),))
        await unstored_runs.erase_due()
        async with database.connection() as held:  # the server's own upkeep may have been first
            await held.execute(_ENDED, (run_of(made),))

    run_sync(look())
    return Run.objects.get(pk=run_of(made))


def run_of(made: Any) -> UUID:
    return UUID(hex=made.id.removeprefix("resp_"))


def test_a_text_that_came_with_what_is_not_stored_goes_with_it(
    sdk: OpenAI, client: Client, ask: Ask
) -> None:
    model, sent = ask(text("Read."))
    part: Any = {"type": "input_file", "file_data": "c2VjcmV0", "filename": "a.txt"}
    made = sdk.responses.create(model=model, input=[{"role": "user", "content": [part]}], store=False)
    assert spoken(sent()[0]) == [("user", '<file name="a.txt">\nsecret\n</file>')]
    (file,) = Attachment.objects.filter(owner_id=client.user.pk)
    assert run_sync(attachments.exists(file.bucket, file.path))
    forgotten(made)
    while run_sync(attachments.delete_orphans())[1]:
        pass
    assert not Attachment.objects.filter(owner_id=client.user.pk).exists()
    assert not run_sync(attachments.exists(file.bucket, file.path))


def test_what_is_not_stored_is_found_nowhere(sdk: OpenAI, client: Client, ask: Ask) -> None:
    word = f"zebra{uuid4().hex}"
    model, sent = ask(text(f"The {word} answered."))
    made = sdk.responses.create(
        model=model, input=f"Where is the {word}?", store=False, metadata={"ticket": word}
    )
    assert made.output_text == f"The {word} answered."
    assert made.store is False  # type: ignore[attr-defined]
    assert spoken(sent()[0]) == [("user", f"Where is the {word}?")]
    run_id = run_of(made)
    for path in (f"/v1/responses/{made.id}", f"/v1/responses/{made.id}/input_items"):
        assert client.http.get(path).status_code == 404
    for path in ("", "/events"):
        assert client.http.get(f"/api/v1/agent/runs/{run_id.hex}{path}").status_code == 404
    with pytest.raises(openai.NotFoundError):
        sdk.responses.create(model=model, input="And?", previous_response_id=made.id)
    assert client.http.get("/api/v1/agent/threads").json()["threads"] == []
    assert client.history()["messages"] == []
    found = client.http.get("/api/v1/agent/history/search", params={"q": word})
    assert (found.status_code, word in found.text) == (200, False)
    run = Run.objects.get(pk=run_id)
    assert not Message.objects.filter(thread=run.thread).exists()
    assert Thread.objects.get(pk=run.thread_id).title == ""
    run = forgotten(made)
    assert word not in json.dumps(run.request)
    assert not EventBatch.objects.filter(run_id=run_id).exists()
    assert (run.status, run.model, run.folded) == ("completed", model, True)
    assert run.output_tokens > 0


def test_an_export_holds_nothing_of_what_was_not_stored(sdk: OpenAI, ask: Ask) -> None:
    kept, gone, named = (f"{word}{uuid4().hex}" for word in ("zebra", "gnu", "talk"))
    model, _ = ask(*(text(f"Of a {word}.") for word in (kept, gone, kept)))
    more: Any = {"model": model, "conversation": named}
    sdk.responses.create(input=f"Where is the {kept}?", **more)
    aside = sdk.responses.create(
        input=f"Where is the {gone}?", store=False, metadata={"ticket": gone}, **more
    )
    sdk.responses.create(input=f"And the {kept}?", **more)
    thread_id = Run.objects.get(pk=run_of(aside)).thread_id
    for form in export.FORMATS:
        told = exported(thread_id, form)
        assert (f"Of a {kept}." in told, f"And the {kept}?" in told, gone in told) == (True, True, False)
    forgotten(aside)
    assert gone not in exported(thread_id, "json")


def exported(thread_id: UUID, form: str) -> str:
    async def read() -> str:
        return b"".join([piece async for piece in export.export(thread_id, form)]).decode()

    return run_sync(read())


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_is_used_again_when_what_was_said_is_gone(
    sdk: OpenAI, client: Client, ask: Ask, stream: bool
) -> None:
    model, sent = ask(text("Once."), text("Never."))
    asked: Any = {"model": model, "input": "Say it.", "store": False}
    headers = {"Idempotency-Key": uuid4().hex}
    first = sdk.responses.create(**asked, extra_headers=headers)
    again = sdk.responses.create(**asked, extra_headers=headers)
    assert (again.id, again.output_text) == (first.id, "Once.")
    forgotten(first)
    with pytest.raises(openai.APIStatusError) as refused:
        sdk.responses.create(**asked, stream=stream, extra_headers=headers)
    assert (refused.value.status_code, refused.value.code) == (410, "run_not_stored")
    assert "was not to be stored" in refused.value.message
    assert len(sent()) == 1
    other = sdk.responses.create(**asked, extra_headers={"Idempotency-Key": uuid4().hex})
    assert other.output_text == "Never."


def test_a_conversation_goes_on_past_what_was_not_stored(sdk: OpenAI, ask: Ask) -> None:
    model, sent = ask(text("One."), text("Two."), text("Three."))
    first = sdk.responses.create(model=model, input="1?")
    aside = sdk.responses.create(model=model, input="2?", previous_response_id=first.id, store=False)
    assert aside.output_text == "Two."
    sdk.responses.create(model=model, input="3?", previous_response_id=first.id)
    assert spoken(sent()[1]) == [("user", "1?"), ("assistant", "One."), ("user", "2?")]
    assert spoken(sent()[2]) == [("user", "1?"), ("assistant", "One."), ("user", "3?")]


def test_what_is_not_stored_makes_no_branch_for_others(sdk: OpenAI, client: Client, ask: Ask) -> None:
    model, sent = ask(*(text(word) for word in ("One.", "Two.", "Aside.", "Three.", "Four.")))
    named = f"talk {uuid4().hex}"
    first = sdk.responses.create(model=model, input="1?", conversation=named)
    second = sdk.responses.create(model=model, input="2?", previous_response_id=first.id)
    aside: Any = {"previous_response_id": first.id, "store": False}
    sdk.responses.create(model=model, input="aside?", **aside)
    told = client.history(named)["messages"]
    assert [one["content"] for one in told] == ["1?", "One.", "2?", "Two."]
    sdk.responses.create(model=model, input="3?", conversation=named)
    sdk.responses.create(model=model, input="4?", previous_response_id=second.id)
    said = [("user", "1?"), ("assistant", "One.")]
    assert spoken(sent()[2]) == [*said, ("user", "aside?")]
    said += [("user", "2?"), ("assistant", "Two.")]
    assert spoken(sent()[3]) == [*said, ("user", "3?")]
    assert spoken(sent()[4]) == [*said, ("user", "4?")]


def test_the_branch_of_a_deleted_response_goes_on_without_it(sdk: OpenAI, ask: Ask) -> None:
    model, sent = ask(*(text(word) for word in ("One.", "Two.", "Other.", "More.", "Most.")))
    first = sdk.responses.create(model=model, input="1?")
    sdk.responses.create(model=model, input="2?", previous_response_id=first.id)
    other = sdk.responses.create(model=model, input="other?", previous_response_id=first.id)
    more = sdk.responses.create(model=model, input="more?", previous_response_id=other.id)
    sdk.responses.delete(other.id)
    sdk.responses.create(model=model, input="most?", previous_response_id=more.id)
    assert spoken(sent()[4]) == [
        ("user", "1?"),
        ("assistant", "One."),
        ("user", "more?"),
        ("assistant", "More."),
        ("user", "most?"),
    ]


def test_a_conversation_whose_beginning_was_not_stored_has_a_title(sdk: OpenAI, client: Client) -> None:
    named = uuid4().hex
    sdk.responses.create(model="demo", input="secret", conversation=named, store=False)
    made = sdk.responses.create(model="demo", input="chest", conversation=named)
    [thread] = client.http.get("/api/v1/agent/threads").json()["threads"]
    assert thread["title"] == "chest"
    assert made.conversation is not None
    assert len(client.history(thread["id"])["messages"]) >= 2


def test_what_is_not_stored_streams_and_can_be_come_back_to_while_it_runs(
    sdk: OpenAI, client: Client, settings: Any
) -> None:
    settings.DEMO_TOKEN_S = 0.05
    stream = sdk.responses.create(model="demo", input="chest", store=False, stream=True)
    seen = [next(stream) for _ in range(4)]
    response_id = seen[0].response.id  # type: ignore[union-attr]
    assert sdk.responses.retrieve(response_id).status == "in_progress"
    resumed = sdk.responses.retrieve(response_id, stream=True, starting_after=3)
    begun = next(resumed)
    settings.DEMO_TOKEN_S = 0
    rest = [begun, *resumed]
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text
    stream.close()
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(response_id)


def test_an_approval_is_given_to_what_is_not_stored(
    sdk: OpenAI,
    ask: Ask,
    echoed: list[str],
) -> None:
    model, sent = ask(tool_calls(("c1", "test_echo", '{"word": "a"}')), text("Done."))
    tools: Any = [OURS | {"require_approval": "always"}]
    said: list[Any] = [{"role": "user", "content": "Go."}]
    more: Any = {"model": model, "tools": tools, "store": False}
    asked = sdk.responses.create(input=said, **more)
    forgotten(asked)
    assert Interrupt.objects.filter(run_id=run_of(asked)).exists(), "it is still waited for"
    request = asked.output[-1]
    said += [item.to_dict() for item in asked.output]
    said.append({"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True})
    assert sdk.responses.create(input=said, **more).output_text == "Done."
    assert echoed == ["a"]
    assert [role for role, _ in spoken(sent()[1])] == ["user", "assistant", "tool"]
    forgotten(asked)
    assert not Interrupt.objects.filter(run_id=run_of(asked)).exists()


def test_in_the_background_everything_is_stored(sdk: OpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        sdk.responses.create(model="demo", input="x", store=False, background=True)
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "background")


# --- deleting and listing -----------------------------------------------------------------------


def test_a_response_is_deleted_with_what_was_said_in_it(sdk: OpenAI, client: Client) -> None:
    first = sdk.responses.create(model="demo", input="a first secret")
    second = sdk.responses.create(model="demo", input="chest", previous_response_id=first.id)
    sdk.responses.delete(first.id)
    for again in (lambda: sdk.responses.retrieve(first.id), lambda: sdk.responses.delete(first.id)):
        with pytest.raises(openai.NotFoundError):
            again()
    [thread] = client.http.get("/api/v1/agent/threads").json()["threads"]
    assert thread["title"] == "chest"
    told = client.history(thread["id"])["messages"]
    assert [entry["content"] for entry in told if entry["role"] == "user"] == ["chest"]
    assert sdk.responses.retrieve(second.id).output_text
    sdk.responses.delete(second.id)
    assert client.http.get("/api/v1/agent/threads").json()["threads"] == []
    forgotten(first)
    assert not EventBatch.objects.filter(run_id=run_of(first)).exists()


def test_a_live_response_is_deleted_and_cancelled(sdk: OpenAI, client: Client, settings: Any) -> None:
    settings.DEMO_TOKEN_S = 0.2
    made = sdk.responses.create(model="demo", input="chest", background=True)
    deleted = client.http.delete(f"/v1/responses/{made.id}")
    assert deleted.json() == {"id": made.id, "object": "response", "deleted": True}
    assert client.http.get("/api/v1/agent/threads").json()["threads"] == []
    assert not Message.objects.filter(run_id=run_of(made)).exists()


def test_nobody_deletes_what_is_another_accounts(sdk: OpenAI, make_client: Callable[[], Client]) -> None:
    foreign = make_client().start()["run_id"]
    with pytest.raises(openai.NotFoundError):
        sdk.responses.delete(f"resp_{foreign}")
    assert Message.objects.filter(run_id=UUID(foreign)).exists()


def test_input_items_are_listed_a_page_at_a_time(sdk: OpenAI) -> None:
    said: Any = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "3"},
        {"role": "user", "content": "four"},
    ]
    made = sdk.responses.create(model="demo", input=said)
    listed = list(sdk.responses.input_items.list(made.id, order="asc", limit=2))
    assert [item.type for item in listed] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert next(iter(sdk.responses.input_items.list(made.id))).type == "message"
    first = sdk.responses.input_items.list(made.id, limit=1)
    assert (first.data[0].content[0].text, first.has_more) == ("four", True)  # type: ignore[union-attr,index]
    again: Any = [{"type": "item_reference", "id": first.data[0].id}]
    assert sdk.responses.create(model="demo", input=again).output_text


# --- refusals -----------------------------------------------------------------------------------


def test_every_refusal_can_be_read_by_the_sdk(sdk: OpenAI, client: Client) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        sdk.responses.create(
            model="demo", input="x", tools=[{"type": "file_search", "vector_store_ids": []}]
        )
    assert "tools[0].type" in str(refused.value)
    assert (refused.value.param, refused.value.type) == ("tools", "invalid_request_error")
    with pytest.raises(openai.AuthenticationError) as refused_:
        sdk.with_options(api_key="nonsense").responses.create(model="demo", input="x")
    assert (refused_.value.type, refused_.value.code) == ("authentication_error", "invalid_token_header")
    for method, path, status in (
        ("GET", "/v1/responses/unknown", 404),
        ("GET", "/v1/no-such-address", 404),
        ("PUT", "/v1/responses", 405),
        ("POST", "/v1/responses", 422),
    ):
        answer = client.http.request(method, path, content=b"{")
        assert answer.status_code == status
        error = answer.json()["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        assert error["message"] == answer.json()["detail"]
    told = client.http.post("/process", content=b"{").json()
    assert told["error"] == {"code": told["code"], "message": told["detail"]}
    assert "error" not in client.http.post("/api/v1/agent/ag-ui", content=b"{").json()


def test_a_refusal_never_repeats_what_was_sent(client: Client) -> None:
    secret = "s3cret" * 500
    for body in (
        {"input": [{"role": secret, "content": "x"}]},
        {"input": [{"type": secret}]},
        {"input": "x", "tools": [{"type": secret}]},
        {"input": "x", "tool_choice": secret},
        {"input": "x", "truncation": secret},
        {"input": "x", "model": secret},
        {"input": "x", "service_tier": secret},
        {"input": [{"type": "item_reference", "id": secret}]},
        {"input": "x", "previous_response_id": secret[:100]},
    ):
        answer = client.http.post("/v1/responses", json={"model": "demo"} | body)
        assert answer.status_code in (404, 422)
        assert "s3cret" not in answer.text

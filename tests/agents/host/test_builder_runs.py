"""Runs of a runner that yields the events of the Agent API's builders (seed 004), on every wire."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from agents.dialects import agent_api
from agents.host_protocol import results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.run_context import AgentRunContext
from conversations.models import Message
from tests.agents.dialects.agent_api import oracle
from tests.agents.dialects.agent_api.exchange import TOOL, frames, process, said
from tests.support.client import Client
from tests.support.doc_pages import snippets
from tests.support.host.hosted_runs import bound, finished, reply
from tests.support.pictures import picture

pytestmark = pytest.mark.once

Script = Callable[[Any], Iterator[Any]]
BUILDERS = pytest.mark.parametrize(
    "builders", [agent_api, oracle.builders], ids=["ours", "the package's"]
)


def answered(client: Client, script: Script, **more: Any) -> list[dict[str, Any]]:
    """The stream of an Agent API run whose runner yields what the script builds."""

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        for event in script(context):
            yield event

    with bound(client.user, says):
        return frames(process(client, said("hi"), **more))


def contents(lines: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The type and the contents of each message of the response."""
    return [(message["type"], message["content"]) for message in lines[-1]["output"]]


@BUILDERS
def test_the_seeds_stream_is_a_runs(client: Client, builders: Any) -> None:
    """Seed 004, builders §3: the example, yielded as it stands."""

    def script(context: Any) -> Iterator[Any]:
        response = builders.ResponseBuilder(session_id="session_123")
        yield from response.generate_streaming_response(
            text_tokens=["Hello", " ", "World", "!"], role="assistant"
        )

    lines = answered(client, script)
    deltas = [line["text"] for line in lines if line.get("delta")]
    assert deltas == ["Hello", " ", "World", "!"]
    assert [(line["object"], line["status"]) for line in lines if not line.get("delta")] == [
        ("response", "created"),
        ("response", "in_progress"),
        ("message", "in_progress"),
        ("content", "completed"),
        ("message", "completed"),
        ("response", "completed"),
    ]
    [(kind, [content])] = contents(lines)
    assert (kind, content["text"]) == ("message", "Hello World!")


def every_way_to_say_it(builders: Any) -> list[Script]:
    def only_deltas(context: Any) -> Iterator[Any]:
        message = builders.ResponseBuilder().create_message_builder()
        content = message.create_content_builder()
        yield content.add_text_delta("Hello")
        yield content.add_delta(" World")

    def only_the_message(context: Any) -> Iterator[Any]:
        message = builders.ResponseBuilder().create_message_builder()
        content = message.create_content_builder()
        content.set_text("Hello World")
        content.complete()
        yield message.complete()

    def only_the_response(context: Any) -> Iterator[Any]:
        response = builders.ResponseBuilder()
        message = response.create_message_builder()
        content = message.create_content_builder()
        content.set_text("Hello World")
        content.complete()
        message.complete()
        yield response.completed()

    def everything_twice(context: Any) -> Iterator[Any]:
        response = builders.ResponseBuilder()
        message = response.create_message_builder()
        content = message.create_content_builder()
        yield content.set_text("Hello")
        yield content.add_delta(" World")
        for _ in range(2):
            yield content.get_content_data()
        yield content.complete()
        yield message.complete()
        yield message.complete()
        yield response.completed()

    return [only_deltas, only_the_message, only_the_response, everything_twice]


@BUILDERS
def test_however_it_is_said_it_is_said_once_and_stored(client: Client, builders: Any) -> None:
    for script in every_way_to_say_it(builders):
        lines = answered(client, script)
        assert contents(lines)[0][1][0]["text"] == "Hello World", script.__name__
        assert "".join(line["text"] for line in lines if line.get("delta")) == "Hello World"
        assert len(lines[-1]["output"]) == 1
        run_id = UUID(lines[-1]["id"].removeprefix("response_"))
        assert [row.content for row in Message.objects.filter(run_id=run_id, role="assistant")] == [
            "Hello World"
        ]


def test_other_wires_read_it_too(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        response = agent_api.ResponseBuilder()
        thought = response.create_message_builder(message_type="reasoning")
        yield thought.get_message_data()
        yield thought.create_content_builder().add_delta("hm")
        message = response.create_message_builder()
        content = message.create_content_builder()
        for token in ("Hello", " World"):
            yield content.add_delta(token)
        yield content.complete()
        yield message.complete()
        response.response.usage = {"input_tokens": 3, "output_tokens": 4}
        yield response.completed()

    with bound(client.user, says):
        run, seen = finished(client)
    assert reply(seen) == "Hello World"
    assert (run["status"], run["usage"]["input_tokens"], run["usage"]["output_tokens"]) == (
        "completed",
        3,
        4,
    )
    read = {"dialect": "responses"}
    told = client.http.get(f"/api/v1/agent/runs/{run['run_id']}/events", params=read).text
    assert "response.reasoning_summary_text.delta" in told
    assert "Hello World" in told


def test_a_message_of_several_contents_stays_one(client: Client) -> None:
    """Seed 004, builders §7; what is inline is an artifact of its owner's."""
    image = base64.b64encode(picture("PNG", (4, 4))).decode()

    def script(context: Any) -> Iterator[Any]:
        response = agent_api.ResponseBuilder()
        message = response.create_message_builder()
        made = [message.create_content_builder(kind) for kind in KINDS]
        made[0].set_text("这是一张图片:")
        made[1].set_image_url("https://example.com/image.jpg")
        made[2].set_image_url(f"data:image/png;base64,{image}")
        made[3].set_audio("UklGRg==", "wav")
        made[4].set_file(filename="a.txt", file_data=base64.b64encode(b"hello").decode())
        made[5].set_data({"city": "Ulm"})
        for content in made:
            yield content.complete()
        yield message.complete()
        yield response.completed()

    lines = answered(client, script)
    [(_, held)] = contents(lines)
    assert [content["type"] for content in held] == KINDS
    assert [content["index"] for content in held] == [*range(len(KINDS))]
    assert held[1]["image_url"] == "https://example.com/image.jpg"
    assert held[2]["image_url"] == f"data:image/png;base64,{image}"
    assert (held[3]["data"], held[3]["format"]) == ("UklGRg==", "wav")
    assert held[5]["data"] == {"city": "Ulm"}
    file = held[4]
    assert (file["filename"], base64.b64decode(file["file_data"])) == ("a.txt", b"hello")
    kept = client.http.get(file["file_url"]).json()
    assert base64.b64decode(kept["url"].partition(",")[2]) == b"hello"
    row = Message.objects.get(run_id=UUID(lines[-1]["id"].removeprefix("response_")), role="assistant")
    stored = row.metadata["contents"]
    assert [content["type"] for content in stored] == KINDS[1:]
    assert image not in json.dumps(stored), "what an artifact holds is not stored twice"
    assert [bool(content.get("artifact_id")) for content in stored] == [False, True, True, True, False]


KINDS = ["text", "image", "image", "audio", "file", "data"]


@BUILDERS
def test_calls_are_the_runners_own_and_the_clients_are_the_clients(
    client: Client, builders: Any
) -> None:
    def script(context: Any) -> Iterator[Any]:
        response = builders.ResponseBuilder()
        for kind, role, data in (
            ("plugin_call", "assistant", {"call_id": "1", "name": "look", "arguments": '{"a": 1}'}),
            ("plugin_call_output", "tool", {"call_id": "1", "name": "look", "output": '{"b": 2}'}),
            ("mcp_call", "assistant", {"call_id": "2", "name": "read", "server_label": "files"}),
            ("mcp_call_output", "tool", {"call_id": "2", "name": "read", "output": "plain"}),
            ("function_call", "assistant", {"call_id": "3", "name": "get_weather", "arguments": "{}"}),
        ):
            message = response.create_message_builder(role=role, message_type=kind)
            yield message.get_message_data()
            content = message.create_content_builder("data")
            content.set_data(data)
            yield content.complete()
            yield message.complete()
        yield response.completed()

    lines = answered(client, script, tools=[TOOL])
    told = [(kind, content[0]["data"]) for kind, content in contents(lines)]
    assert [kind for kind, _ in told] == [
        "plugin_call",
        "plugin_call_output",
        "mcp_call",
        "mcp_call_output",
        "function_call",
    ]
    assert json.loads(told[0][1]["arguments"]) == {"a": 1}
    assert json.loads(told[1][1]["output"]) == {"b": 2}
    assert told[2][1]["server_label"] == "files"
    assert json.loads(told[3][1]["output"]) == {"output": "plain"}
    assert told[4][1]["name"] == "get_weather"
    run = client.run(lines[-1]["id"].removeprefix("response_"))
    assert run["finish_reason"] == "tool_calls"


def test_a_refusal_and_a_cut_answer_are_said_as_such(client: Client) -> None:
    def refuses(context: Any) -> Iterator[Any]:
        response = agent_api.ResponseBuilder()
        message = response.create_message_builder()
        content = message.create_content_builder("refusal")
        yield content.set_refusal("I can't.")
        yield content.complete()
        yield message.complete()
        yield response.completed()

    def is_cut(context: Any) -> Iterator[Any]:
        response = agent_api.ResponseBuilder()
        content = response.create_message_builder().create_content_builder()
        yield content.add_delta("half")
        response.response.status = agent_api.RunStatus.Incomplete
        yield response.get_response_data()

    [(_, [content])] = contents(answered(client, refuses))
    assert (content["type"], content["refusal"]) == ("refusal", "I can't.")
    assert answered(client, is_cut)[-1]["status"] == "incomplete"


@BUILDERS
def test_what_fails_there_fails_the_run(client: Client, builders: Any) -> None:
    models = oracle.models if builders is oracle.builders else agent_api

    def response_fails(context: Any) -> Iterator[Any]:
        response = builders.ResponseBuilder()
        yield response.response.failed(models.Error(code="no_gym", message="It is closed."))

    def says_an_error(context: Any) -> Iterator[Any]:
        message = models.Message(type="error", role="assistant", code="no_gym", message="It is closed.")
        yield message.completed()

    for script in (response_fails, says_an_error):
        last = answered(client, script)[-1]
        assert (last["status"], last["error"]) == (
            "failed",
            {"code": "no_gym", "message": "It is closed."},
        )
        assert last["output"][-1]["type"] == "error"

    def is_canceled(context: Any) -> Iterator[Any]:
        yield builders.ResponseBuilder().response.canceled()

    assert answered(client, is_canceled)[-1]["error"]["code"] == "runner.canceled"


WRONG: list[dict[str, Any]] = [
    {"content": [{"type": "image", "image_url": "javascript:alert(1)"}]},
    {"content": [{"type": "image", "image_url": "file:///etc/passwd"}]},
    {"content": [{"type": "image", "image_url": "data:image/png,plain"}]},
    {"content": [{"type": "audio", "data": "no base64!"}]},
    {"content": [{"type": "data", "data": None}]},
    {"content": [{"type": "file", "file_data": base64.b64encode(b"x" * 1_048_577).decode()}]},
    {"type": "function_call", "content": [{"type": "data", "data": {"name": "no id"}}]},
    {"type": "mcp_approval_request", "content": []},
]


@pytest.mark.parametrize("message", WRONG, ids=range(len(WRONG)))
def test_what_nothing_can_be_made_of_ends_the_run_and_says_why(
    client: Client, message: dict[str, Any]
) -> None:
    def script(context: Any) -> Iterator[Any]:
        told = {"role": "assistant", "status": "completed"} | message
        yield agent_api.Message.model_validate(told)

    last = answered(client, script)[-1]
    assert (last["status"], last["error"]["code"]) == ("failed", "runner.protocol_error")
    assert "passwd" not in json.dumps(last)
    assert "alert" not in json.dumps(last)


def test_what_is_none_of_it_is_refused_by_its_names(client: Client) -> None:
    def script(context: Any) -> Iterator[Any]:
        yield {"object": "message"}

    last = answered(client, script)[-1]
    assert last["error"]["code"] == "runner.protocol_error"
    assert "Agent API" in last["error"]["message"]


def test_the_example_of_the_page_runs_as_it_is_printed(client: Client) -> None:
    [_, code] = snippets("extending/runners.md", "python")
    names: dict[str, Any] = {}
    exec(compile(code, "extending/runners.md", "exec"), names)

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        async for event in names["run"](None, context, host):
            yield event

    with bound(client.user, says):
        [(_, [content])] = contents(frames(process(client, said("hi"))))
    assert content["text"] == "Hello World!"


def test_results_and_builders_can_take_turns(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        yield results.piece(context.run_id, "first")
        message = agent_api.ResponseBuilder().create_message_builder()
        content = message.create_content_builder()
        yield content.add_delta("second")
        yield results.message(context.run_id, "third")

    with bound(client.user, says):
        lines = frames(process(client, said("hi")))
    texts = sorted(content["text"] for _, [content] in contents(lines))
    assert texts == ["first", "second", "third"]

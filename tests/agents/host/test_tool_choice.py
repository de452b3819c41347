"""What a client says of its tools, where a hosted runner answers: obeyed, or the run fails for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agents.host_protocol import results
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import RunResult, ToolStartedData
from agents.host_protocol.run_context import AgentRunContext
from tests.support.client import Client
from tests.support.host.hosted_runs import bound
from tests.support.host.stage import Says

pytestmark = pytest.mark.once

NUMBER = {"type": "object", "properties": {"kg": {"type": "number"}}, "required": ["kg"]}
LOAD = {"type": "function", "name": "load", "parameters": NUMBER, "strict": False}
SEARCH = "gymbro.exercise.search"


def calls(*asked: tuple[str, dict[str, Any]]) -> Says:
    """A runner that says that it calls these tools."""

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for place, (name, parameters) in enumerate(asked):
            begun = ToolStartedData(f"call_{place}", name, parameters)
            data = {"tool_call_id": begun.tool_call_id, "tool_name": name, "parameters": parameters}
            yield RunResult(run_id=context.run_id, type=results.TOOL_STARTED, data=data)
        if not asked:
            yield results.message(context.run_id, "I call nothing.")

    return says


def ask(client: Client, says: Says, **more: Any) -> dict[str, Any]:
    body = {"model": "demo", "input": "100 kg", "tools": [LOAD]} | more
    with bound(client.user, says, tools=[SEARCH]):
        answer: dict[str, Any] = client.http.post("/v1/responses", json=body).json()
    return answer


def test_a_runner_calls_a_clients_tool_and_the_client_answers(client: Client) -> None:
    answer = ask(client, calls(("load", {"kg": 100})), tool_choice={"type": "function", "name": "load"})
    (call,) = answer["output"]
    assert (answer["status"], call["type"], call["name"]) == ("completed", "function_call", "load")
    assert call["arguments"] == '{"kg":100}'
    run = client.run(answer["id"].removeprefix("resp_"))
    assert run["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("says", "more", "why"),
    [
        (calls(), {"tool_choice": "required"}, "tool_choice: the runner did not call a tool."),
        (
            calls(("other", {})),
            {"tool_choice": {"type": "function", "name": "load"}},
            "tool_choice: the runner did not call load.",
        ),
        (
            calls(("load", {"kg": 1}), ("load", {"kg": 2})),
            {"parallel_tool_calls": False},
            "parallel_tool_calls: the runner called two of the client's tools.",
        ),
        (
            calls(("load", {"kg": "heavy"})),
            {"tools": [LOAD | {"strict": True, "parameters": NUMBER | {"additionalProperties": False}}]},
            "tools.strict: the runner's arguments do not fit the tool's schema.",
        ),
    ],
)
def test_what_is_not_obeyed_fails_by_its_name(
    client: Client, says: Says, more: dict[str, Any], why: str
) -> None:
    answer = ask(client, says, **more)
    assert (answer["status"], answer["error"]["message"]) == ("failed", why)
    assert answer["error"]["type"] == "tool_choice_not_obeyed"


def test_a_tool_of_ours_that_the_runner_calls_through_its_host_counts(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        found = await host.tools.call(SEARCH, {"query": "squat"})
        yield results.message(context.run_id, str(len(found["results"])))

    ours = {"type": "mcp", "server_label": "parley", "require_approval": "never"}
    forced = {"type": "mcp", "server_label": "parley", "name": SEARCH}
    answer = ask(client, says, tools=[ours], tool_choice=forced)
    assert (answer["status"], answer["error"]) == ("completed", None)


def test_more_calls_than_the_request_allows_are_refused(client: Client) -> None:
    refused: list[HostRefusal] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for _ in range(2):
            try:
                await host.tools.call(SEARCH, {"query": "squat"})
            except HostRefusal as refusal:
                refused.append(refusal)
        yield results.message(context.run_id, "ok")

    assert ask(client, says, max_tool_calls=1)["status"] == "completed"
    assert [(one.code, one.message) for one in refused] == [
        ("rate_limited", "max_tool_calls: the request allows 1 calls of tools.")
    ]


def test_of_our_tools_a_runner_has_those_that_the_request_lists(client: Client) -> None:
    contexts: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        contexts.append(context)
        yield results.message(context.run_id, "ok")

    ask(client, says)
    only = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "load"}]}
    ask(client, says, tool_choice=only)
    assert [[one.tool_name for one in context.resources.tools] for context in contexts] == [
        [SEARCH],
        [],
    ]


def test_a_clients_answer_comes_with_the_whole_conversation_and_the_runner_goes_on(
    client: Client,
) -> None:
    """Chat Completions: the answer comes with the whole conversation, and the runner goes on from it."""
    contexts: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        contexts.append(context)
        if outcomes := context.event.data.get("outcomes"):
            yield results.message(context.run_id, f"It says {outcomes[0]['content']}.")
            return
        async for one in calls(("load", {"kg": 100}))(context, host):
            yield one

    tool = {"type": "function", "function": {"name": "load", "parameters": NUMBER}}
    said: list[Any] = [{"role": "user", "content": "100 kg"}]
    body = {"model": "demo", "tools": [tool], "store": False}
    with bound(client.user, says):
        first = client.http.post("/v1/chat/completions", json=body | {"messages": said}).json()
        choice = first["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        (call,) = choice["message"]["tool_calls"]
        said += [choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "4 plates"}]
        second = client.http.post("/v1/chat/completions", json=body | {"messages": said}).json()
    assert second["choices"][0]["message"]["content"] == "It says 4 plates."
    assert [one.event.event_type for one in contexts] == ["message.received", "approval.decided"]

"""agentscope-runtime: the Agent API's own client and objects."""

import asyncio
import sys
from pathlib import Path
from typing import Any

# the package without its servers
sys.path.append(str(Path(__file__).parents[2] / "agents/dialects/agent_api"))

from oracle import clients, models
from serving import WEATHER, Given, serve


def ask(given: Given, *said: Any, **more: Any) -> models.AgentResponse:
    """The response at the end of a stream."""
    client = clients.HTTPAgentAPIClient(f"{given.url}/process", token=given.token)
    request = models.AgentRequest(input=list(said), model=given.model, **more)
    return [event for event in client.stream(request) if event.object == "response"][-1]


def user(text: str) -> models.Message:
    return models.Message(role="user", content=[models.TextContent(text=text)])


def words(response: Any) -> str:
    return "".join(
        part.text
        for message in response.output
        if message.type == "message"
        for part in message.content
        if part.type == "text"
    )


def two_turns(given: Given) -> Any:
    """The server keeps the session; then the client begins another."""
    turns = (("I am Ada.", "one"), ("Who am I?", "one"), ("Who am I?", "two"))
    return [words(ask(given, user(text), session_id=name)) for text, name in turns]


def asynchronous(given: Given) -> Any:
    async def read() -> list[str]:
        client = clients.HTTPAgentAPIClient(f"{given.url}/process", token=given.token)
        request = models.AgentRequest(input=[user("Count.")], model=given.model)
        return [
            event.text
            async for event in client.astream(request)
            if isinstance(event, models.TextContent) and event.delta
        ]

    return "".join(asyncio.run(read()))


def tool_and_answer(given: Given) -> Any:
    tools = [models.Tool(type="function", function=WEATHER)]
    asked = ask(given, user("Is it warm in Ulm?"), session_id="tools", tools=tools)
    call = next(m.content[0].data for m in asked.output if m.type.endswith("_call"))
    told = models.Message(
        role="tool",
        type=models.MessageType.FUNCTION_CALL_OUTPUT,
        content=[models.DataContent(data={"call_id": call["call_id"], "output": "21 °C"})],
    )
    answer = ask(given, told, session_id="tools", tools=tools)
    return [call["name"], call["arguments"], words(answer)]


serve(globals())

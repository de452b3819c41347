"""openai-agents: its runner over both of OpenAI's APIs."""

import os

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from typing import Any

import openai
from openai import AsyncOpenAI
from pydantic import BaseModel
from serving import Given, serve

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
)


class City(BaseModel):
    name: str
    people: int


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"21 °C in {city}"


def agent(given: Given, *, api: str = "responses", **more: Any) -> Agent:
    client = AsyncOpenAI(base_url=f"{given.url}/v1", api_key=given.token, max_retries=0)
    kind = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
    model = kind(model=given.model, openai_client=client)
    return Agent(name="Guide", model=model, **({"instructions": "Talk like a pirate."} | more))


async def two_turns(given: Given) -> Any:
    """The second turn sends the first's items, and the agent's instructions have changed."""
    first = await Runner.run(agent(given), "I am Ada.")
    said = [*first.to_input_list(), {"role": "user", "content": "Who am I?"}]
    second = await Runner.run(agent(given, instructions="Talk like a judge."), said)
    return [first.final_output, second.final_output]


async def session(given: Given) -> Any:
    """The SDK's own session; then the app takes its last question back."""
    kept = SQLiteSession("conversation")
    guide = agent(given)
    first = await Runner.run(guide, "I am Ada.", session=kept)
    await kept.pop_item()
    await kept.pop_item()
    second = await Runner.run(guide, "I am Bob.", session=kept)
    return [first.final_output, second.final_output]


async def previous_response(given: Given) -> Any:
    guide = agent(given)
    first = await Runner.run(guide, "I am Ada.")
    second = await Runner.run(guide, "Who am I?", previous_response_id=first.last_response_id)
    return [first.final_output, second.final_output]


async def stream(given: Given) -> Any:
    words = []
    result = Runner.run_streamed(agent(given), "Count.")
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            words.append(event.data.delta)
    return ["".join(words), result.final_output]


async def tool_and_answer(given: Given) -> Any:
    result = await Runner.run(agent(given, tools=[get_weather]), "Is it warm in Ulm?")
    return result.final_output


async def forced_tool(given: Given) -> Any:
    """The named tool first; the SDK itself resets the choice afterwards."""
    forced = agent(given, tools=[get_weather], model_settings=ModelSettings(tool_choice="get_weather"))
    return (await Runner.run(forced, "Ulm?")).final_output


async def structured(given: Given) -> Any:
    shaped = await Runner.run(agent(given, output_type=City), "A city.")
    said = [*shaped.to_input_list(), {"role": "user", "content": "In words."}]
    plain = await Runner.run(agent(given), said)
    return [shaped.final_output.model_dump(), plain.final_output]


async def handoff(given: Given) -> Any:
    poet = agent(given, instructions="Talk in verse.").clone(name="Poet", handoff_description="Rhymes.")
    result = await Runner.run(agent(given, handoffs=[poet]), "A poem, please.")
    return [result.last_agent.name, result.final_output]


async def wrong_then_right(given: Given) -> Any:
    try:
        await Runner.run(agent(Given(given | {"model": "no-such-model"})), "Hello.")
    except openai.APIStatusError as error:
        printed = str(error)
    return [printed, (await Runner.run(agent(given), "Hello.")).final_output]


async def chat_two_turns(given: Given) -> Any:
    first = await Runner.run(agent(given, api="chat"), "I am Ada.")
    said = [*first.to_input_list(), {"role": "user", "content": "Who am I?"}]
    second = await Runner.run(agent(given, api="chat", instructions="Talk like a judge."), said)
    return [first.final_output, second.final_output]


async def chat_tool_and_answer(given: Given) -> Any:
    guide = agent(given, api="chat", tools=[get_weather])
    return (await Runner.run(guide, "Is it warm in Ulm?")).final_output


serve(globals())

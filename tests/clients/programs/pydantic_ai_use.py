"""pydantic-ai: an agent over both of OpenAI's APIs."""

import base64
from typing import Any

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelHTTPError, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from serving import Given, serve


class City(BaseModel):
    name: str
    people: int


def agent(given: Given, **more: Any) -> Agent:
    client = AsyncOpenAI(base_url=f"{given.url}/v1", api_key=given.token, max_retries=0)
    kind = OpenAIResponsesModel if given.get("responses") else OpenAIChatModel
    model = kind(given.model, provider=OpenAIProvider(openai_client=client))
    return Agent(model, **({"instructions": "Talk like a pirate."} | more))


async def two_turns(given: Given) -> Any:
    """The second turn has the first's messages, and the instructions have changed."""
    first = await agent(given).run("I am Ada.")
    judge = agent(given, instructions="Talk like a judge.")
    second = await judge.run("Who am I?", message_history=first.all_messages())
    return [first.output, second.output]


async def edited(given: Given) -> Any:
    """The app takes its question back and asks another."""
    guide = agent(given)
    first = await guide.run("I am Ada.")
    again = await guide.run("I am Bob.", message_history=first.all_messages()[:0])
    return again.output


async def stream(given: Given) -> Any:
    async with agent(given).run_stream("Count.") as result:
        words = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    return "".join(words)


async def tool_and_answer(given: Given) -> Any:
    guide = agent(given)
    called = []

    @guide.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        called.append(city)
        return f"21 °C in {city}"

    return [(await guide.run("Is it warm in Ulm?")).output, called]


async def structured(given: Given) -> Any:
    """By a tool that must be called, as is its default; then as a JSON Schema."""
    by_tool = await agent(given, output_type=City).run("A city.")
    native = await agent(given, output_type=NativeOutput(City)).run("A city.")
    return [by_tool.output.model_dump(), native.output.model_dump()]


async def image(given: Given) -> Any:
    data = base64.b64decode(given.image.partition(",")[2])
    guide = agent(given)
    first = await guide.run(["What is it?", BinaryContent(data, media_type="image/png")])
    second = await guide.run("What colour?", message_history=first.all_messages())
    return [first.output, second.output]


async def wrong_then_right(given: Given) -> Any:
    try:
        await agent(Given(given | {"model": "no-such-model"})).run("Hello.")
    except ModelHTTPError as error:
        printed = str(error)
    return [printed, (await agent(given).run("Hello.")).output]


serve(globals())

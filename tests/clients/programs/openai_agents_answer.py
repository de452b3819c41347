"""A command-line agent of the OpenAI Agents SDK: the prompt on its input, the answer line by line."""

import asyncio
import os
import sys

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from openai import AsyncOpenAI

from agents import Agent, OpenAIChatCompletionsModel, Runner


async def main() -> None:
    client = AsyncOpenAI(max_retries=0)  # OPENAI_BASE_URL and OPENAI_API_KEY
    model = OpenAIChatCompletionsModel(model=os.environ["OPENAI_MODEL"], openai_client=client)
    done = await Runner.run(Agent(name="Guide", model=model), sys.stdin.read())
    print(done.final_output, flush=True)


asyncio.run(main())

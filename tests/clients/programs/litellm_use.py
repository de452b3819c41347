"""litellm: completion(), responses(), and the bridge from the one to the other."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for prices

from typing import Any

import litellm
from pydantic import BaseModel
from serving import WEATHER, Given, serve

litellm.telemetry = False
CHAT_TOOL = {"type": "function", "function": WEATHER}
TOOL = {"type": "function", **WEATHER}


class City(BaseModel):
    name: str
    people: int


def complete(given: Given, said: list[Any], **more: Any) -> Any:
    return litellm.completion(
        model=f"openai/{given.get('bridge', '')}{given.model}",
        api_base=f"{given.url}/v1",
        api_key=given.token,
        messages=said,
        max_retries=0,
        **more,
    )


def respond(given: Given, **more: Any) -> Any:
    return litellm.responses(
        model=f"openai/{given.model}",
        api_base=f"{given.url}/v1",
        api_key=given.token,
        max_retries=0,
        **more,
    )


def words(response: Any) -> str:
    return "".join(
        part.text for item in response.output if item.type == "message" for part in item.content
    )


def two_turns(given: Given) -> Any:
    said: list[Any] = [
        {"role": "system", "content": "Talk like a pirate."},
        {"role": "user", "content": "I am Ada."},
    ]
    first = complete(given, said)
    said[0] = {"role": "system", "content": "Talk like a judge."}
    said += [first.choices[0].message.model_dump(), {"role": "user", "content": "Who am I?"}]
    second = complete(given, said)
    return [one.choices[0].message.content for one in (first, second)]


def stream(given: Given) -> Any:
    said = [{"role": "user", "content": "Count."}]
    chunks = complete(given, said, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def tool_and_answer(given: Given) -> Any:
    said: list[Any] = [{"role": "user", "content": "Is it warm in Ulm?"}]
    asked = complete(given, said, tools=[CHAT_TOOL]).choices[0].message
    call = asked.tool_calls[0]
    said += [asked.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "21 °C"}]
    answer = complete(given, said, tools=[CHAT_TOOL])
    return [call.function.name, call.function.arguments, answer.choices[0].message.content]


def forced_tool(given: Given) -> Any:
    said = [{"role": "user", "content": "Ulm?"}]
    asked = complete(given, said, tools=[CHAT_TOOL], tool_choice=given.choice)
    plain = complete(given, said, tools=[CHAT_TOOL], tool_choice="none")
    return [
        asked.choices[0].message.tool_calls[0].function.name,
        plain.choices[0].message.content,
    ]


def structured(given: Given) -> Any:
    said: list[Any] = [{"role": "user", "content": "A city."}]
    shaped = complete(given, said, response_format=City).choices[0].message.content
    plain = complete(given, said).choices[0].message.content
    return [City.model_validate_json(shaped).model_dump(), plain]


def wrong_then_right(given: Given) -> Any:
    said = [{"role": "user", "content": "Hello."}]
    try:
        complete(Given(given | {"model": "no-such-model"}), said)
    except litellm.exceptions.APIError as error:
        printed = str(error)
    except Exception as error:
        printed = str(error)
    return [printed, complete(given, said).choices[0].message.content]


def responses_two_turns(given: Given) -> Any:
    first = respond(given, input="I am Ada.", instructions="Talk like a pirate.")
    second = respond(
        given,
        input="Who am I?",
        instructions="Talk like a judge.",
        previous_response_id=first.id,
    )
    return [words(first), words(second)]


def responses_tool_and_answer(given: Given) -> Any:
    asked = respond(given, input="Is it warm in Ulm?", tools=[TOOL])
    call = next(item for item in asked.output if item.type == "function_call")
    told = {"type": "function_call_output", "call_id": call.call_id, "output": "21 °C"}
    answer = respond(given, input=[told], previous_response_id=asked.id, tools=[TOOL])
    return [call.name, words(answer)]


serve(globals())

"""langchain-openai: its default mode, which is Chat Completions, and Responses."""

from typing import Any

import openai
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from serving import Given, serve


class City(BaseModel):
    """A city."""

    name: str
    people: int


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"21 °C in {city}"


def llm(given: Given, **more: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model=given.model,
        base_url=f"{given.url}/v1",
        api_key=given.token,
        max_retries=0,
        use_responses_api=given.get("responses", False),
        **more,
    )


def text(message: AIMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


def two_turns(given: Given) -> Any:
    """The whole history each time; the system message has changed."""
    said: list[Any] = [SystemMessage("Talk like a pirate."), HumanMessage("I am Ada.")]
    first = llm(given).invoke(said)
    said = [SystemMessage("Talk like a judge."), *said[1:], first, HumanMessage("Who am I?")]
    return [text(first), text(llm(given).invoke(said))]


def previous_response(given: Given) -> Any:
    model = llm(given, use_previous_response_id=True)
    said: list[Any] = [HumanMessage("I am Ada.")]
    said.append(model.invoke(said))
    said.append(HumanMessage("Who am I?"))
    return [text(said[1]), text(model.invoke(said))]


def stream(given: Given) -> Any:
    whole = None
    for chunk in llm(given, stream_usage=True).stream("Count."):
        whole = chunk if whole is None else whole + chunk
    return [text(whole), whole.usage_metadata["total_tokens"]]


def tool_and_answer(given: Given) -> Any:
    model = llm(given).bind_tools([get_weather])
    said: list[Any] = [HumanMessage("Is it warm in Ulm?")]
    asked = model.invoke(said)
    call = asked.tool_calls[0]
    said += [asked, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])]
    return [call["name"], call["args"], text(model.invoke(said))]


def forced_tool(given: Given) -> Any:
    """The tool must be called, then any, then none is bound."""
    named = llm(given).bind_tools([get_weather], tool_choice="get_weather").invoke("Ulm?")
    some = llm(given).bind_tools([get_weather], tool_choice="any").invoke("Ulm?")
    return [named.tool_calls[0]["name"], some.tool_calls[0]["name"], text(llm(given).invoke("Ulm?"))]


def structured(given: Given) -> Any:
    """First as a JSON Schema, then by a function that must be called."""
    found = [
        llm(given).with_structured_output(City, method=method).invoke("A city.")
        for method in ("json_schema", "function_calling")
    ]
    return [one and one.model_dump() for one in found]


def image(given: Given) -> Any:
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": given.image}},
    ]
    said: list[Any] = [HumanMessage(parts)]
    first = llm(given).invoke(said)
    second = llm(given).invoke([*said, first, HumanMessage("What colour?")])
    return [text(first), text(second)]


def wrong_then_right(given: Given) -> Any:
    try:
        llm(Given(given | {"model": "no-such-model"})).invoke("Hello.")
    except openai.APIStatusError as error:
        printed = str(error)
    return [printed, text(llm(given).invoke("Hello."))]


serve(globals())

"""OpenAI's Python SDK: both of its APIs."""

from typing import Any

import openai
from pydantic import BaseModel
from serving import WEATHER, Given, serve

TOOL = {"type": "function", **WEATHER, "strict": True}
CHAT_TOOL = {"type": "function", "function": WEATHER | {"strict": True}}


class City(BaseModel):
    name: str
    people: int


class River(BaseModel):
    name: str
    length_km: float


def sdk(given: Given) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{given.url}/v1", api_key=given.token, max_retries=0)


def refused(call: Any) -> dict[str, Any]:
    """What an app shows of an error."""
    try:
        call()
    except openai.APIStatusError as error:
        return {"printed": str(error), "code": error.code, "kind": type(error).__name__}
    raise AssertionError("nothing was refused")


# --- Responses ---------------------------------------------------------------------------------


def two_turns(given: Given) -> Any:
    ask = sdk(given).responses.create
    first = ask(model=given.model, input="I am Ada.", instructions="Talk like a pirate.")
    second = ask(
        model=given.model,
        input="Who am I?",
        instructions="Talk like a judge.",
        previous_response_id=first.id,
    )
    return [first.output_text, second.output_text]


def whole_history(given: Given) -> Any:
    """The whole conversation each time, with the items of the answers as they came."""
    ask = sdk(given).responses.create
    said: list[Any] = [{"role": "user", "content": "I am Ada."}]
    first = ask(model=given.model, input=said, store=False)
    said += [item.to_dict() for item in first.output]
    said.append({"role": "user", "content": "Who am I?"})
    second = ask(model=given.model, input=said, store=False)
    return [first.output_text, second.output_text]


def branches(given: Given) -> Any:
    """The app goes back to its first answer and asks something else."""
    ask = sdk(given).responses.create
    first = ask(model=given.model, input="Pick a city.")
    ask(model=given.model, input="And one in Peru?", previous_response_id=first.id)
    other = ask(model=given.model, input="And one in Chad?", previous_response_id=first.id)
    return other.output_text


def stream(given: Given) -> Any:
    ask = sdk(given).responses
    with ask.stream(model=given.model, input="Count.") as events:
        words = [event.delta for event in events if event.type == "response.output_text.delta"]
        first = events.get_final_response()
    again = ask.create(model=given.model, input="Again.", previous_response_id=first.id, stream=True)
    more = [event.delta for event in again if event.type == "response.output_text.delta"]
    return ["".join(words), "".join(more), first.output_text]


def tool_and_answer(given: Given) -> Any:
    ask = sdk(given).responses.create
    asked = ask(model=given.model, input="Is it warm in Ulm?", tools=[TOOL])
    call = asked.output[-1]
    told = {"type": "function_call_output", "call_id": call.call_id, "output": "21 °C"}
    answer = ask(model=given.model, previous_response_id=asked.id, input=[told], tools=[TOOL])
    return [call.name, call.arguments, answer.output_text]


def forced_tool(given: Given) -> Any:
    """A tool must be called; on second thoughts none may be."""
    ask = sdk(given).responses.create
    choice = {"type": "function", "name": "get_weather"}
    asked = ask(
        model=given.model,
        input="Ulm?",
        tools=[TOOL],
        tool_choice=choice,
        parallel_tool_calls=False,
    )
    told = {
        "type": "function_call_output",
        "call_id": asked.output[-1].call_id,
        "output": "21 °C",
    }
    answer = ask(
        model=given.model,
        previous_response_id=asked.id,
        input=[told],
        tools=[TOOL],
        tool_choice="none",
    )
    return [asked.output[-1].name, answer.output_text]


def structured(given: Given) -> Any:
    """The answer is wanted in one form, then in another."""
    parse = sdk(given).responses.parse
    city = parse(model=given.model, input="A city.", text_format=City)
    river = parse(model=given.model, input="Its river.", text_format=River, previous_response_id=city.id)
    return [city.output_parsed.model_dump(), river.output_parsed.model_dump()]


def image(given: Given) -> Any:
    parts = [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": given.image, "detail": "auto"},
    ]
    ask = sdk(given).responses.create
    first = ask(model=given.model, input=[{"role": "user", "content": parts}])
    second = ask(model=given.model, input="What colour?", previous_response_id=first.id)
    return [first.output_text, second.output_text]


def wrong_then_right(given: Given) -> Any:
    ask = sdk(given).responses.create
    wrong = [
        refused(lambda: ask(model="no-such-model", input="Hello.")),
        refused(lambda: ask(model=given.model, input=[{"role": "boss", "content": "Hello."}])),
        refused(lambda: ask(model=given.model, input="Hello.", temperature=9)),
        refused(lambda: ask(model=given.model, input="Hello.", tool_choice="required")),
    ]
    return wrong, ask(model=given.model, input="Hello.").output_text


def not_stored(given: Given) -> Any:
    ask = sdk(given).responses
    made = ask.create(model=given.model, input="A secret.", store=False)
    gone = refused(lambda: ask.retrieve(made.id))
    later = refused(lambda: ask.create(model=given.model, input="What?", previous_response_id=made.id))
    return [made.output_text, gone["kind"], later["kind"]]


# --- Chat Completions --------------------------------------------------------------------------


def models(given: Given) -> Any:
    """A name is chosen from the list and used."""
    listed = [model.id for model in sdk(given).models.list()]
    (name,) = [name for name in listed if given.model.endswith(name)]
    answer = sdk(given).responses.create(model=name, input="Hello.")
    return ["demo" in listed, sdk(given).models.retrieve(name).id == name, answer.output_text]


def chat_two_turns(given: Given) -> Any:
    ask = sdk(given).chat.completions.create
    said: list[Any] = [
        {"role": "system", "content": "Talk like a pirate."},
        {"role": "user", "content": "I am Ada."},
    ]
    first = ask(model=given.model, messages=said)
    said[0] = {"role": "developer", "content": "Talk like a judge."}
    said += [first.choices[0].message.to_dict(), {"role": "user", "content": "Who am I?"}]
    second = ask(model=given.model, messages=said)
    return [
        [one.choices[0].message.content, one.choices[0].finish_reason, one.usage.total_tokens]
        for one in (first, second)
    ]


def chat_edited(given: Given) -> Any:
    """The app rewrites the first question and asks again."""
    ask = sdk(given).chat.completions.create
    ask(model=given.model, messages=[{"role": "user", "content": "I am Ada."}])
    again = ask(model=given.model, messages=[{"role": "user", "content": "I am Bob."}])
    return again.choices[0].message.content


def chat_stream(given: Given) -> Any:
    ask = sdk(given).chat.completions.create
    said = [{"role": "user", "content": "Count."}]
    words, usage = [], None
    for chunk in ask(
        model=given.model,
        messages=said,
        stream=True,
        stream_options={"include_usage": True},
        stop=["four"],
    ):
        words += [choice.delta.content or "" for choice in chunk.choices]
        usage = chunk.usage or usage
    return ["".join(words), usage.total_tokens]


def chat_tool_and_answer(given: Given) -> Any:
    ask = sdk(given).chat.completions.create
    said: list[Any] = [{"role": "user", "content": "Is it warm in Ulm?"}]
    asked = ask(model=given.model, messages=said, tools=[CHAT_TOOL])
    call = asked.choices[0].message.tool_calls[0]
    said += [
        asked.choices[0].message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": "21 °C"},
    ]
    answer = ask(model=given.model, messages=said, tools=[CHAT_TOOL])
    return [
        asked.choices[0].finish_reason,
        call.function.name,
        call.function.arguments,
        answer.choices[0].message.content,
    ]


def chat_forced_tool(given: Given) -> Any:
    ask = sdk(given).chat.completions.create
    said = [{"role": "user", "content": "Ulm?"}]
    choice = {"type": "function", "function": {"name": "get_weather"}}
    asked = ask(model=given.model, messages=said, tools=[CHAT_TOOL], tool_choice=choice)
    plain = ask(model=given.model, messages=said, tools=[CHAT_TOOL], tool_choice="none")
    return [
        asked.choices[0].message.tool_calls[0].function.name,
        plain.choices[0].message.content,
    ]


def chat_structured(given: Given) -> Any:
    parse = sdk(given).chat.completions.parse
    found = []
    for question, form in (("A city.", City), ("Its river.", River)):
        said = [{"role": "user", "content": question}]
        answer = parse(model=given.model, messages=said, response_format=form)
        found.append(answer.choices[0].message.parsed.model_dump())
    return found


def chat_image(given: Given) -> Any:
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": given.image}},
    ]
    ask = sdk(given).chat.completions.create
    said: list[Any] = [{"role": "user", "content": parts}]
    first = ask(model=given.model, messages=said)
    said += [first.choices[0].message.to_dict(), {"role": "user", "content": "What colour?"}]
    second = ask(model=given.model, messages=said)
    return [one.choices[0].message.content for one in (first, second)]


def chat_wrong_then_right(given: Given) -> Any:
    ask = sdk(given).chat.completions.create
    said = [{"role": "user", "content": "Hello."}]
    wrong = [
        refused(lambda: ask(model="no-such-model", messages=said)),
        refused(lambda: ask(model=given.model, messages=said, n=3)),
        refused(lambda: ask(model=given.model, messages=said, logprobs=True)),
    ]
    return wrong, ask(model=given.model, messages=said).choices[0].message.content


serve(globals())

"""What a real client of each dialect makes of a run's stream, in words that all of them share."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct
from openai import omit
from openai._models import construct_type
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from agents.host_protocol.results import RunResult
from tests.agents.dialects.ag_ui.node import GENERATIONS, Clients
from tests.agents.dialects.agent_api import oracle
from tests.support.client import FRAME

EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class Reading(Struct, frozen=True):
    """`end` is ok, cancelled, or the error's code; None is what a dialect has no words for.

    Calls are (tool, arguments); answers are results or errors' codes, both without their order.
    A wire that has one text alone parts its messages by blank lines, so those do not count.
    """

    words: str
    end: str
    answers: Counter[str] | None
    calls: Counter[tuple[str, str]] | None
    reasoning: str | None = None
    approvals: tuple[str, ...] | None = None

    def agrees(self, other: Reading) -> bool:
        """Whether both say the same, as far as both can say it."""
        mine, theirs = (
            (r.spoken, r.end, r.answers, r.calls, r.reasoning, r.approvals) for r in (self, other)
        )
        return all(a == b or a is None or b is None for a, b in zip(mine, theirs, strict=True))

    @property
    def spoken(self) -> str:
        return self.words.replace("\n\n", "")


def blocks(body: str) -> list[dict[str, str]]:
    """The server-sent events of a body, each as its fields; comments are left out."""
    assert "\r" not in body
    assert body.endswith("\n\n")
    found = []
    for block in body.removesuffix("\n\n").split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n") if not line.startswith(":")]
        if lines:
            found.append({name: value for name, _, value in lines})
            assert len(found[-1]) == len(lines), "no field twice"
    return found


def plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def outcome(answer: Any) -> str:
    """An answer's result, or the code of its error."""
    told = json.loads(answer) if isinstance(answer, str) else answer
    error = told.get("error") if isinstance(told, dict) else None
    return str(error["code"]) if isinstance(error, dict) and "code" in error else plain(told)


def text_reading(clients: Clients, body: str) -> Reading:
    """Every frame fits the published schema, and there is one end, the last."""
    frames = [(block["event"], json.loads(block["data"])) for block in blocks(body)]
    for event, data in frames:
        FRAME.validate({"event": event, "data": data})
    said = [(event, data) for event, data in frames if event != "heartbeat"]
    ends = [event in {"completed", "error"} for event, _ in said]
    assert ends == [False] * (len(said) - 1) + [True]
    last, data = said[-1]
    results = [data for event, data in said if event == "tool_result"]
    return Reading(
        words="".join(data["delta"] for event, data in said if event == "content_delta"),
        end="ok" if last == "completed" else data["code"],
        answers=Counter(map(_result, results)),
        calls=Counter((_named(d["tool_name"]), plain(d["args"])) for e, d in said if e == "tool_start"),
    )


def _named(tool: str) -> str:
    """This wire has no tools without a name."""
    return "" if tool == "unknown" else tool


def _result(told: dict[str, Any]) -> str:
    return outcome({"error": told["error"]} if told.get("error") else told.get("result") or {})


def ag_ui_reading(clients: Clients, body: str) -> Reading:
    """Both generations take it without a complaint and have the same of it.

    What was begun by a client of 1.0 is written for such clients.
    """
    able = GENERATIONS[:1] if '"protocolVersion"' in body else GENERATIONS
    read = [_ag_ui_reading(clients.new(generation).run(sse=body)) for generation in able]
    assert read[0] == read[-1]
    return read[0]


def _ag_ui_reading(seen: dict[str, Any]) -> Reading:
    assert (seen["failure"], seen["warnings"]) == (None, [])
    kinds = [event["type"] for event in seen["events"]]
    assert kinds[0] == "RUN_STARTED"
    ends = [kind in {"RUN_FINISHED", "RUN_ERROR"} for kind in kinds]
    assert ends == [False] * (len(kinds) - 1) + [True]
    messages = seen["messages"]
    calls = [call["function"] for message in messages for call in message.get("toolCalls", [])]
    return Reading(
        words=_joined(m.get("content") for m in messages if m["role"] == "assistant"),
        end=_ag_ui_end(seen),
        answers=Counter(outcome(m["content"]) for m in messages if m["role"] == "tool"),
        calls=Counter((call["name"], plain(json.loads(call["arguments"]))) for call in calls),
        reasoning=_joined(m["content"] for m in messages if m["role"] == "reasoning"),
        approvals=tuple(i.get("metadata", {}).get("tool_name", "") for i in seen["interrupts"]),
    )


def _ag_ui_end(seen: dict[str, Any]) -> str:
    if seen["errors"]:
        return str(seen["errors"][0]["code"])
    return "cancelled" if seen["outcome"] == "cancelled" else "ok"


def agent_api_reading(clients: Clients, body: str) -> Reading:
    """The reference's own client parses every line; the response at the end holds all."""
    sent = [json.loads(block["data"]) for block in blocks(body)]
    lines = [line for line in sent if line.get("type") != "heartbeat"]
    assert [line["sequence_number"] for line in lines] == [*range(len(lines))]
    parsed = [oracle.clients.parse_sse_line(f"data: {json.dumps(line)}") for line in lines]
    assert None not in parsed
    last = oracle.models.AgentResponse.model_validate(lines[-1])
    statuses = [line["status"] for line in lines if line["object"] == "response"]
    assert statuses[-1] in {"completed", "incomplete", "failed", "canceled", "rejected"}
    assert statuses[:-1] in (["created"], ["created", "in_progress"])
    told = [(m.type, content) for m in last.output for content in m.content or ()]
    data = [(kind, content.data) for kind, content in told if content.type == "data"]
    return Reading(
        words=_joined(_words(content) for kind, content in told if kind == "message"),
        end=_end(last.status, last.error and last.error.code),
        answers=Counter(outcome(d["output"]) for kind, d in data if kind.endswith("_output")),
        calls=Counter(
            (d["name"], plain(json.loads(d["arguments"]))) for kind, d in data if kind.endswith("_call")
        ),
        reasoning=_joined(content.text for kind, content in told if kind == "reasoning"),
        approvals=tuple(d["name"] for kind, d in data if kind == "mcp_approval_request"),
    )


def _words(content: Any) -> str | None:
    told: str | None = getattr(content, content.type, None) if content.type in _SAYS else None
    return told


_SAYS = {"text", "refusal"}


def responses_reading(clients: Clients, body: str) -> Reading:
    """The SDK's own types and its accumulator take every event."""
    state: Any = ResponseStreamState(text_format=omit, input_tools=omit)
    lines = [json.loads(block["data"]) for block in blocks(body)]
    assert [line["sequence_number"] for line in lines] == [*range(len(lines))]
    for line in lines:
        EVENTS.validate_python(line)
        state.handle_event(construct_type(type_=ResponseStreamEvent, value=line))
    last = Response.model_validate(lines[-1]["response"])
    items: list[Any] = list(last.output)
    made = [item for item in items if item.type in {"mcp_call", "function_call"}]
    error: Any = last.error
    return Reading(
        words=_joined(part.text for item in items if item.type == "message" for part in item.content),
        end=_end(str(last.status), error.type if error else None),
        answers=Counter(filter(None, map(_answer, made))),
        calls=Counter((item.name, plain(json.loads(item.arguments))) for item in made),
        reasoning=_joined(p.text for item in items if item.type == "reasoning" for p in item.summary),
        approvals=tuple(item.name for item in items if item.type == "mcp_approval_request"),
    )


def runner_reading(clients: Clients, body: str) -> Reading:
    """Each frame is a result of the seed's shape; errors of tools have no code there."""
    said = [msgspec.json.decode(block["data"], type=RunResult) for block in blocks(body)]
    assert [result.sequence for result in said] == [*range(1, len(said) + 1)]
    ends = [result.type in {"run.completed", "run.failed"} for result in said]
    assert ends == [False] * (len(said) - 1) + [True]
    pieces = [r.data["chunk"] for r in said if r.type == "message.delta"]
    whole = [r.data["message"] for r in said if r.type == "message.completed"]
    texts = dict.fromkeys((m["resp_message_id"] for m in (*pieces, *whole)), "")
    texts |= {m["resp_message_id"]: m["content"] for m in whole if m["role"] == "assistant"}
    begun = [result.data for result in said if result.type == "tool.call.started"]
    return Reading(
        words=_joined(texts.values()),
        end="ok" if said[-1].type == "run.completed" else said[-1].data["code"],
        answers=None,
        calls=Counter((call["tool_name"], plain(call["parameters"])) for call in begun),
    )


def completions_reading(clients: Clients, body: str) -> Reading:
    """The SDK's own types and its accumulator take every chunk; the server's tools are not shown."""
    lines = [json.loads(block["data"]) for block in blocks(body)]
    error = lines.pop()["error"] if "error" in lines[-1] else None
    state: Any = ChatCompletionStreamState(input_tools=omit, response_format=omit)
    for line in lines:
        state.handle_chunk(ChatCompletionChunk.model_validate(line))
    deltas = [choice["delta"] for line in lines for choice in line["choices"]]
    text = _joined(delta.get("content") for delta in deltas)
    if lines:
        assert state.current_completion_snapshot.choices[0].message.content in (text, text or None)
    return Reading(
        words=_WAITING.sub("", text),
        end=error["code"] if error else "ok",
        answers=None,
        calls=None,
        reasoning=_joined(delta.get("reasoning_content") for delta in deltas).replace("\n\n", ""),
    )


_WAITING = re.compile(r"(?:\n\n)?\[[^\]]* waits for an approval\.\]")


def _answer(item: Any) -> str | None:
    error = getattr(item, "error", None)
    if error:
        told = error if isinstance(error, dict) else error.model_dump()
        return str(told["content"][0]["text"].partition(":")[0])
    output = getattr(item, "output", None)
    return None if output is None else outcome(output)


def _end(status: str, code: str | None) -> str:
    if status in {"canceled", "cancelled"}:
        return "cancelled"
    return "ok" if status in {"completed", "incomplete"} else str(code)


def _joined(texts: Iterable[str | None]) -> str:
    return "".join(text for text in texts if text)


READINGS: dict[str, Callable[[Clients, str], Reading]] = {
    "text": text_reading,
    "run-agent-input": ag_ui_reading,
    "ag-ui": ag_ui_reading,
    "agent-api": agent_api_reading,
    "chat-completions": completions_reading,
    "responses": responses_reading,
    "runner": runner_reading,
}

"""Models for runners: the run's own and those that its binding grants, by the Host's own clients."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import Struct

from agents.host.action_registry import action
from agents.host.session import Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import HostRefusal, invalid, not_found, too_large
from agents.host_protocol.messages import (
    Content,
    ContentElement,
    LLMTool,
    Message,
    MessageChunk,
    TokenUsage,
    ToolCall,
    text_in,
    tool_call,
)
from agents.knowledge import embeddings
from agents.providers import base as providers
from agents.requests import Generation
from config.errors import ParleyError
from conversations import events
from conversations.events import Usage
from prompts.endpoints import routing

_MAX_MESSAGES: Final = 2_000
_MAX_CHARACTERS: Final = 8 * 1024 * 1024
_MAX_TEXTS: Final = 512
_MAX_EMBEDDED_LENGTH: Final = 1024 * 1024
_MAX_DOCUMENTS: Final = 64
_DATA_URL: Final = re.compile(r"data:([\w/+.-]{1,100});base64,")
_WORD: Final = re.compile(r"[0-9A-Za-z]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


@action("invoke_llm", "models", "invoke", resource="llm_model_uuid", seconds=120)
async def invoke(session: Session, params: parameters.InvokeModel) -> replies.Invoked:
    """Return the model's whole answer."""
    pieces: list[str] = []
    finished = providers.Finished("stop", Usage())
    async with aclosing(_events(session, params)) as stream:
        async for event in stream:
            match event:
                case providers.TextDelta(text):
                    pieces.append(text)
                case providers.Finished():
                    finished = event
    calls = reply_calls(finished.tool_calls)
    whole = Message(role="assistant", content="".join(pieces), tool_calls=calls)
    return replies.Invoked(message=whole, usage=_reply_usage(finished.usage))


@action("invoke_llm_stream", "models", "stream", resource="llm_model_uuid", seconds=120)
async def stream(
    session: Session, params: parameters.InvokeModel
) -> AsyncGenerator[replies.StreamedChunk]:
    """Yield the model's answer in true increments; the last chunk is final and has the tool calls."""
    place = 0
    async with aclosing(_events(session, params)) as model_events:
        async for event in model_events:
            place += 1
            match event:
                case providers.TextDelta(text):
                    chunk = MessageChunk(role="assistant", content=text, msg_sequence=place)
                    yield replies.StreamedChunk(chunk=chunk)
                case providers.Finished(_, usage, calls):
                    chunk = MessageChunk(
                        role="assistant",
                        content="",
                        tool_calls=reply_calls(calls),
                        is_final=True,
                        msg_sequence=place,
                    )
                    yield replies.StreamedChunk(chunk=chunk, usage=_reply_usage(usage))


async def _events(
    session: Session, params: parameters.InvokeModel
) -> AsyncGenerator[providers.ModelEvent]:
    """Yield the model's events; the run is charged for the tokens, and its log names the endpoint."""
    messages = _messages(params.messages)
    tools = tuple(
        providers.ToolSpec(tool.name, tool.description, tool.parameters) for tool in params.funcs
    )
    generation = _generation(params.extra_args)
    host = session.host.for_model(await _route(params.llm_model_uuid), generation)
    async with aclosing(host.stream_model(messages, tools)) as groups:
        async for group in groups:
            for event in group:
                match event:
                    case providers.Opened(endpoint_id, provider, model, upstream_request_id):
                        routed = events.ModelRouted(provider, model, endpoint_id, upstream_request_id)
                        session.facts.append(routed)
                    case providers.Finished():
                        session.usage = session.usage.plus(event.usage)
                yield event


async def _route(name: str) -> routing.ModelRoute:
    try:
        return await routing.route(name)
    except ParleyError:
        raise not_found(f"LLM model with llm_model_uuid {name} not found") from None


def _messages(raw: Sequence[Message]) -> tuple[providers.ChatMessage, ...]:
    if len(raw) > _MAX_MESSAGES:
        raise too_large(f"A model is asked with at most {_MAX_MESSAGES} messages.")
    messages = tuple(_message(one) for one in raw)
    if sum(len(one.content) for one in messages) > _MAX_CHARACTERS:
        raise too_large(f"A model is asked with at most {_MAX_CHARACTERS} characters.")
    return messages


def _message(message: Message) -> providers.ChatMessage:
    role: Any = message.role if message.role in ("system", "user", "assistant", "tool") else "user"
    calls = tuple(
        providers.ToolCall(call.id, call.function.name, call.function.arguments)
        for call in message.tool_calls or ()
    )
    return providers.ChatMessage(
        role,
        text_in(message.content),
        images=_images(message.content),
        tool_calls=calls,
        tool_call_id=message.tool_call_id or "",
    )


def _images(content: Content) -> tuple[providers.ImagePart, ...]:
    parts = content if isinstance(content, list) else []
    return tuple(image for part in parts if (image := _image(part)) is not None)


def _image(part: ContentElement) -> providers.ImagePart | None:
    """Return an image that a runner sends as bytes; addresses of others are not fetched."""
    source = part.image_base64 or (part.image_url.url if part.image_url else "")
    found = _DATA_URL.match(source)
    if found:
        return providers.ImagePart(found.group(1), source[found.end() :])
    return providers.ImagePart("image/png", source) if part.image_base64 else None


def _generation(extra: dict[str, Any]) -> Generation:
    """Return the runner's sampling parameters; raise HostRefusal for unknown ones."""
    known = {name: value for name, value in extra.items() if value is not None}
    if unknown := [name for name in known if name not in Generation.__struct_fields__]:
        words = ", ".join(Generation.__struct_fields__)
        raise invalid(f"extra_args: {unknown[0]:.100} is none of {words}.")
    if isinstance(known.get("stop"), str):
        known["stop"] = (known["stop"],)
    try:
        return msgspec.convert(known, Generation)
    except msgspec.ValidationError as problem:
        raise invalid(f"extra_args: {problem}") from None


def reply_calls(calls: Sequence[providers.ToolCall]) -> list[ToolCall] | None:
    """Return a provider's calls for a runner; None for none."""
    return [tool_call(call.id, call.name, call.arguments) for call in calls] or None


def _reply_usage(usage: Usage) -> TokenUsage:
    total = usage.input_tokens + usage.output_tokens
    return TokenUsage(usage.input_tokens, usage.output_tokens, total)


# --- vectors, ranking and counting ----------------------------------------------------------------


@action("invoke_embedding", "models", "invoke", resource="embedding_model_uuid", seconds=60)
async def embed(session: Session, params: parameters.Embed) -> replies.Embedded:
    """Return a vector per text, in order; raise HostRefusal `runtime_error` if there is none.

    The tokens are not metered: only calls of chat models are.
    """
    if len(params.texts) > _MAX_TEXTS or sum(map(len, params.texts)) > _MAX_EMBEDDED_LENGTH:
        raise too_large(
            f"At most {_MAX_TEXTS} texts, of {_MAX_EMBEDDED_LENGTH} characters together, are embedded."
        )
    found = await embeddings.compute_vectors(params.embedding_model_uuid, params.texts)
    if found is None:
        raise HostRefusal("runtime_error", "The model gives no embeddings now.", retryable=True)
    return replies.Embedded(tuple(found))


class _RerankScores(Struct):
    scores: list[float]


@action("invoke_rerank", "models", "rerank", resource="rerank_model_uuid")
async def rerank(session: Session, params: parameters.Rerank) -> replies.Reranked:
    """Return the documents in order of relevance to the query, by the granted model's scores.

    No provider's wire here has a rerank call, so a chat model judges; its scores are 0 to 1.
    """
    documents = params.documents[:_MAX_DOCUMENTS]
    if not documents:
        return replies.Reranked(())
    question = Message(role="user", content=_rerank_prompt(params.query, documents))
    request = parameters.InvokeModel(
        llm_model_uuid=params.rerank_model_uuid, messages=[question], extra_args={"temperature": 0.0}
    )
    answer = await invoke(session, request)
    scores = _scores(text_in(answer.message.content), len(documents))
    ranked = sorted(
        (replies.Ranked(place, score) for place, score in enumerate(scores)),
        key=lambda one: -one.relevance_score,
    )
    return replies.Reranked(tuple(ranked[: params.top_k] if params.top_k is not None else ranked))


def _rerank_prompt(query: str, documents: Sequence[str]) -> str:
    listed = "\n".join(f"[{place}] {text[:4_000]}" for place, text in enumerate(documents))
    return (
        "Score how well each document answers the query, from 0 to 1. Answer with JSON alone: "
        f'{{"scores": [one number for each of the {len(documents)} documents, in order]}}\n\n'
        f"Query: {query}\n\nDocuments:\n{listed}"
    )


def _scores(text: str, count: int) -> list[float]:
    begin, end = text.find("{"), text.rfind("}")
    try:
        verdict = msgspec.json.decode(text[begin : end + 1].encode(), type=_RerankScores)
    except msgspec.MsgspecError:
        verdict = _RerankScores([])
    if len(verdict.scores) != count:
        raise HostRefusal("runtime_error", "The model did not score the documents.", retryable=True)
    return [min(1.0, max(0.0, score)) for score in verdict.scores]


@action("count_tokens", "models", "count_tokens", resource="llm_model_uuid")
async def count_tokens(session: Session, params: parameters.CountTokens) -> replies.Counted:
    """Return an estimate of the messages' tokens: words and CJK characters, plus the framing."""
    texts = [text_in(one.content) for one in params.messages]
    offered = [_tool_text(tool) for tool in params.funcs]
    words = sum(_tokens_of(text) for text in (*texts, *offered))
    return replies.Counted(words + 4 * len(params.messages))


def _tool_text(tool: LLMTool) -> str:
    return f"{tool.name} {tool.description} {msgspec.json.encode(tool.parameters).decode()}"


def _tokens_of(text: str) -> int:
    return sum(1 + (len(found.group()) - 1) // 6 for found in _WORD.finditer(text))

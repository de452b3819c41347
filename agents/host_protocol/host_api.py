"""The Host as a runner uses it: the seed's proxy (§7) in typed calls; the Host behind it checks them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Literal, Protocol

from msgspec import Struct

from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import invalid
from agents.host_protocol.messages import LLMTool, Message, MessageChunk, RetrievalEntry
from agents.host_protocol.parameters import CallTool, Reply


class Calls(Protocol):
    """The one door to the Host."""

    async def call(self, action: str, params: parameters.Call[Reply]) -> Reply:
        """Return the action's reply; raise HostRefusal if the action is not allowed or fails."""
        ...

    def stream(self, action: str, params: Struct) -> AsyncGenerator[Any]:
        """Yield the action's replies; raise HostRefusal as `call`, before the first or between two."""
        ...


class HostApi:
    """The Host for one run's runner; every call may raise HostRefusal."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.models = Models(calls)
        self.tools = Tools(calls)
        self.knowledge = Knowledge(calls)
        self.history = History(calls)
        self.events = Events(calls)
        self.artifacts = Artifacts(calls)
        self.state = State(calls)
        self.storage = Storage(calls)
        self.platform = Platform(calls)

    async def prompt(self) -> str:
        """Return the run's system message, which a model reads first; "" if there is none."""
        found = await self.calls.call("get_prompt", parameters.GetPrompt())
        return "\n\n".join(message["content"] for message in found.prompt)


class _Group:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls


class Models(_Group):
    """Calls of models; `model_id` is one of `context.resources.models`."""

    async def invoke(
        self,
        model_id: str,
        messages: Sequence[Message],
        tools: Sequence[LLMTool] | None = None,
        extra_args: dict[str, Any] | None = None,
    ) -> Message:
        """Return the whole answer; the Host translates `extra_args` for the provider.

        Raise HostRefusal for an extra argument that the Host does not know.
        """
        params = _invoke(model_id, messages, tools, extra_args)
        return (await self._calls.call("invoke_llm", params)).message

    async def stream(
        self,
        model_id: str,
        messages: Sequence[Message],
        tools: Sequence[LLMTool] | None = None,
        extra_args: dict[str, Any] | None = None,
    ) -> AsyncGenerator[MessageChunk]:
        """Yield increments; the last `is_final` and has the tool calls. `extra_args` as in `invoke`."""
        chunks = self._calls.stream("invoke_llm_stream", _invoke(model_id, messages, tools, extra_args))
        async with aclosing(chunks):
            async for one in chunks:
                yield one.chunk

    async def rerank(
        self, model_id: str, query: str, documents: Sequence[str], top_k: int | None = None
    ) -> Sequence[replies.Ranked]:
        """Return the documents that fit best, the best first."""
        params = parameters.Rerank(
            rerank_model_uuid=model_id, query=query, documents=list(documents), top_k=top_k
        )
        return (await self._calls.call("invoke_rerank", params)).results

    async def embed(self, model_id: str, texts: Sequence[str]) -> Sequence[list[float]]:
        """Return a vector per text, in order."""
        params = parameters.Embed(embedding_model_uuid=model_id, texts=list(texts))
        return (await self._calls.call("invoke_embedding", params)).vectors


def _invoke(
    model_id: str,
    messages: Sequence[Message],
    tools: Sequence[LLMTool] | None,
    extra: dict[str, Any] | None,
) -> parameters.InvokeModel:
    return parameters.InvokeModel(
        llm_model_uuid=model_id,
        messages=list(messages),
        funcs=list(tools or ()),
        extra_args=extra or {},
    )


class Tools(_Group):
    async def get_detail(self, tool_name: str) -> replies.ToolDetail:
        return (await self._calls.call("get_tool_detail", parameters.DescribeTool(tool_name))).tool

    async def call(
        self, tool_name: str, parameters: dict[str, Any], *, may_wait: bool = True
    ) -> dict[str, Any]:
        """Return the tool's object.

        A call that needs an approval does not return: the run stops here with an interrupt, and the
        runner is run again with the event `approval.decided`, which has the outcome. With `may_wait`
        false it is refused (`unauthorized`, reason `approval_required`).
        """
        params = CallTool(tool_name=tool_name, parameters=parameters, may_wait=may_wait)
        return (await self._calls.call("call_tool", params)).result


class Knowledge(_Group):
    async def retrieve(
        self, kb_id: str, query_text: str, top_k: int = 5, filters: dict[str, Any] | None = None
    ) -> Sequence[RetrievalEntry]:
        """Return the chunks that fit best, the best first."""
        params = parameters.Retrieve(kb_id=kb_id, query_text=query_text, top_k=top_k, filters=filters)
        return (await self._calls.call("retrieve_knowledge_base", params)).results


class History(_Group):
    async def page(
        self,
        conversation_id: str | None = None,
        before_cursor: str | None = None,
        after_cursor: str | None = None,
        limit: int = 50,
        direction: Literal["backward", "forward"] = "backward",
        include_artifacts: bool = False,
    ) -> replies.HistoryPage:
        """Return a page of the messages before this run: backward newest first, forward oldest first."""
        params = parameters.PageHistory(
            conversation_id=conversation_id,
            before_cursor=before_cursor,
            after_cursor=after_cursor,
            limit=limit,
            direction=direction,
            include_artifacts=include_artifacts,
        )
        return await self._calls.call("history_page", params)

    async def search(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int = 10
    ) -> replies.HistoryFound:
        """Return the messages that hold the query; `filters`: roles, item_types, conversation_id."""
        params = parameters.SearchHistory(query=query, filters=filters, top_k=top_k)
        return await self._calls.call("history_search", params)


class Events(_Group):
    async def get(self, event_id: str) -> replies.EventRecord:
        return await self._calls.call("event_get", parameters.GetEvent(event_id))

    async def page(
        self,
        before_cursor: str | None = None,
        limit: int = 50,
        *,
        conversation_id: str | None = None,
        event_types: list[str] | None = None,
    ) -> replies.EventPage:
        """Return a page of the conversation's events, newest first."""
        params = parameters.PageEvents(
            conversation_id=conversation_id,
            event_types=event_types,
            before_cursor=before_cursor,
            limit=limit,
        )
        return await self._calls.call("event_page", params)


class Artifacts(_Group):
    async def metadata(self, artifact_id: str) -> replies.ArtifactMetadata:
        return await self._calls.call("artifact_metadata", parameters.GetArtifact(artifact_id))

    async def read_range(
        self, artifact_id: str, offset: int = 0, length: int | None = 65_536
    ) -> replies.ArtifactRead:
        params = parameters.ReadArtifact(artifact_id=artifact_id, offset=offset, limit=length)
        return await self._calls.call("artifact_read", params)

    async def open_stream(self, artifact_id: str) -> AsyncGenerator[bytes]:
        """Yield all bytes of the artifact, in pieces."""
        pieces = self._calls.stream("artifact_stream", parameters.GetArtifact(artifact_id))
        async with aclosing(pieces) as read:
            async for one in read:
                yield one.content or b""


class State(_Group):
    """Small JSON values by scope (conversation, actor, subject, runner, binding) and key."""

    async def get(self, scope: str, key: str) -> Any:
        return (await self._calls.call("state_get", parameters.GetState(scope, key))).value

    async def set(self, scope: str, key: str, value: Any) -> None:
        await self._calls.call("state_set", parameters.SetState(scope, key, value))

    async def delete(self, scope: str, key: str) -> bool:
        """Delete the key; return whether it existed."""
        return (await self._calls.call("state_delete", parameters.DeleteState(scope, key))).success

    async def list(self, scope: str, prefix: str | None = None, limit: int = 100) -> replies.StateKeys:
        params = parameters.ListState(scope=scope, prefix=prefix, limit=limit)
        return await self._calls.call("state_list", params)


class Storage(_Group):
    """Bytes by area (plugin, workspace, binding) and key."""

    async def get(self, area: str, key: str) -> bytes:
        params = parameters.GetStored(key=key, area=area)
        return (await self._calls.call("get_binary_storage", params)).value

    async def set(self, area: str, key: str, value: bytes) -> None:
        """Store the bytes; raise HostRefusal `invalid_argument` for a value that is not bytes."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise invalid("A stored value is bytes.")
        params = parameters.SetStored(key=key, value=bytes(value), area=area)
        await self._calls.call("set_binary_storage", params)

    async def delete(self, area: str, key: str) -> None:
        await self._calls.call("delete_binary_storage", parameters.DeleteStored(key=key, area=area))

    async def list(self, area: str, prefix: str | None = None) -> Sequence[str]:
        params = parameters.ListStored(prefix=prefix, area=area)
        return (await self._calls.call("get_binary_storage_keys", params)).keys


class Platform(_Group):
    async def request_action(
        self,
        action: str,
        target: dict[str, Any] | None = None,
        payload: dict[str, Any] | None = None,
    ) -> replies.ActionTaken:
        """Request a platform action; the approval policy decides when it is executed."""
        params = parameters.RequestAction(action=action, target=target, payload=payload)
        return await self._calls.call("request_action", params)

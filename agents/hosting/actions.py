"""The table of Host actions: what each is called on the wire, needs, takes and gives.

Adding an action is a row here and a coroutine of the same name in `agents.hostcalls`; the checks of
all rows are made in one place, `agents.hostcalls.session`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from agents.hosting import asks, records

Group = Literal[
    "models", "tools", "knowledge_bases", "history", "events", "artifacts", "storage", "files",
    "platform_api", "state", "",
]  # fmt: skip


class Action(Struct, frozen=True, kw_only=True):
    """One thing a runner may ask of the Host.

    `group` and `operation` are the permission in the manifest; "" of both needs none (state is the
    binding's to allow, `storage`'s operation is the ask's area, `platform_api`'s the asked action).
    `resource` is what the ask is about, for the grant and the audit; `seconds` how long it may take.
    """

    name: str
    takes: type[Struct]
    gives: type[Struct]
    group: Group = ""
    operation: str = ""
    resource: Callable[[Any], str] = lambda ask: ""
    seconds: float = 30.0
    streams: bool = False


def _table() -> tuple[Action, ...]:
    model, rerank = (lambda ask: ask.llm_model_uuid), (lambda ask: ask.rerank_model_uuid)
    tool, base, key = (lambda ask: ask.tool_name), (lambda ask: ask.kb_id), (lambda ask: ask.key)
    conversation = lambda ask: ask.conversation_id or ""  # noqa: E731
    event, artifact = (lambda ask: ask.event_id), (lambda ask: ask.artifact_id)
    state = lambda ask: f"{ask.scope}/{getattr(ask, 'key', '')}"  # noqa: E731
    return (
        Action(
            name="invoke_llm", takes=asks.InvokeModel, gives=records.Invoked,
            group="models", operation="invoke", resource=model, seconds=120,
        ),
        Action(
            name="invoke_llm_stream", takes=asks.InvokeModel, gives=records.StreamedChunk,
            group="models", operation="stream", resource=model, seconds=120, streams=True,
        ),
        Action(
            name="invoke_rerank", takes=asks.Rerank, gives=records.Reranked,
            group="models", operation="rerank", resource=rerank,
        ),
        Action(
            name="invoke_embedding", takes=asks.Embed, gives=records.Embedded,
            group="models", operation="invoke", seconds=60,
            resource=lambda ask: ask.embedding_model_uuid,
        ),
        Action(
            name="count_tokens", takes=asks.CountTokens, gives=records.Counted,
            group="models", operation="count_tokens", resource=model,
        ),
        Action(
            name="get_tool_detail", takes=asks.DescribeTool, gives=records.ToolDescribed,
            group="tools", operation="detail", resource=tool,
        ),
        Action(
            name="call_tool", takes=asks.CallTool, gives=records.ToolCalled,
            group="tools", operation="call", resource=tool, seconds=180,
        ),
        Action(
            name="retrieve_knowledge_base", takes=asks.Retrieve, gives=records.Retrieved,
            group="knowledge_bases", operation="retrieve", resource=base,
        ),
        Action(
            name="history_page", takes=asks.PageHistory, gives=records.HistoryPage,
            group="history", operation="page", resource=conversation,
        ),
        Action(
            name="history_search", takes=asks.SearchHistory, gives=records.HistoryFound,
            group="history", operation="search",
        ),
        Action(
            name="event_get", takes=asks.GetEvent, gives=records.EventRecord,
            group="events", operation="get", resource=event, seconds=15,
        ),
        Action(
            name="event_page", takes=asks.PageEvents, gives=records.EventPage,
            group="events", operation="page", resource=conversation,
        ),
        Action(
            name="artifact_metadata", takes=asks.GetArtifact, gives=records.ArtifactMetadata,
            group="artifacts", operation="metadata", resource=artifact, seconds=15,
        ),
        Action(
            name="artifact_read", takes=asks.ReadArtifact, gives=records.ArtifactRead,
            group="artifacts", operation="read", resource=artifact, seconds=60,
        ),
        Action(
            name="artifact_stream", takes=asks.GetArtifact, gives=records.ArtifactRead,
            group="artifacts", operation="read", resource=artifact, seconds=60, streams=True,
        ),
        Action(
            name="state_get", takes=asks.GetState, gives=records.StateValue,
            group="state", resource=state, seconds=15,
        ),
        Action(
            name="state_set", takes=asks.SetState, gives=records.Done,
            group="state", resource=state, seconds=15,
        ),
        Action(
            name="state_delete", takes=asks.DeleteState, gives=records.Done,
            group="state", resource=state, seconds=15,
        ),
        Action(
            name="state_list", takes=asks.ListState, gives=records.StateKeys,
            group="state", resource=state, seconds=15,
        ),
        Action(
            name="get_binary_storage", takes=asks.GetStored, gives=records.StoredValue,
            group="storage", resource=key, seconds=15,
        ),
        Action(
            name="set_binary_storage", takes=asks.SetStored, gives=records.Nothing,
            group="storage", resource=key, seconds=15,
        ),
        Action(
            name="delete_binary_storage", takes=asks.DeleteStored, gives=records.Nothing,
            group="storage", resource=key, seconds=15,
        ),
        Action(
            name="get_binary_storage_keys", takes=asks.ListStored, gives=records.StorageKeys,
            group="storage", seconds=15,
        ),
        Action(
            name="get_config_file", takes=asks.GetFile, gives=records.FileContent,
            group="files", operation="config", resource=lambda ask: ask.file_key, seconds=15,
        ),
        Action(
            name="request_action", takes=asks.RequestAction, gives=records.ActionTaken,
            group="platform_api", resource=lambda ask: ask.action,
        ),
        Action(
            name="run_append_result", takes=asks.AppendResult, gives=records.RunEventRecord,
            resource=lambda ask: ask.result.type, seconds=15,
        ),
        Action(name="get_prompt", takes=asks.GetPrompt, gives=records.PromptTold, seconds=15),
        Action(name="get_langbot_version", takes=asks.GetVersion, gives=records.Version, seconds=15),
    )  # fmt: skip


ACTIONS: Final[dict[str, Action]] = {action.name: action for action in _table()}

"""The parameters of Host calls: one Struct per action, with the wire's keys as fields.

Keys of the envelope (`run_id`, `caller_plugin_identity`, `query_id`, …) are not parameters; they are
ignored when read from JSON. `area` of storage comes from the wire's `owner_type`.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from msgspec import Meta, Struct, field

from agents.host_protocol import replies
from agents.host_protocol.messages import LLMTool, Message
from agents.host_protocol.results import RunResult

Text = Annotated[str, Meta(min_length=1, max_length=200)]
Reply = TypeVar("Reply")


class Call(Struct, Generic[Reply], frozen=True):
    """The parameters of a call that has this reply."""


class InvokeModel(Call[replies.Invoked], frozen=True, kw_only=True):
    llm_model_uuid: Text
    messages: list[Message]
    funcs: list[LLMTool] = []
    extra_args: dict[str, Any] = {}
    remove_think: bool | None = None
    timeout: float | None = None


class Rerank(Call[replies.Reranked], frozen=True, kw_only=True):
    rerank_model_uuid: Text
    query: str
    documents: list[str]
    top_k: int | None = None
    extra_args: dict[str, Any] | None = None


class Embed(Call[replies.Embedded], frozen=True, kw_only=True):
    embedding_model_uuid: Text
    texts: list[str]


class CountTokens(Call[replies.Counted], frozen=True, kw_only=True):
    llm_model_uuid: Text
    messages: list[Message]
    funcs: list[LLMTool] = []
    extra_args: dict[str, Any] = {}


class DescribeTool(Call[replies.ToolDescribed], frozen=True):
    tool_name: Text


class CallTool(Call[replies.ToolCalled], frozen=True, kw_only=True):
    """With `may_wait`, a call that needs an approval stops the run until then; else it is refused."""

    tool_name: Text
    parameters: dict[str, Any] = {}
    may_wait: bool = True


class Retrieve(Call[replies.Retrieved], frozen=True, kw_only=True):
    kb_id: Text
    query_text: str
    top_k: int = 5
    filters: dict[str, Any] | None = None


class PageHistory(Call[replies.HistoryPage], frozen=True, kw_only=True):
    conversation_id: str | None = None
    before_cursor: str | None = None
    after_cursor: str | None = None
    limit: int = 50
    direction: Literal["backward", "forward"] = "backward"
    include_artifacts: bool = False
    include_attachments: bool = False


class SearchHistory(Call[replies.HistoryFound], frozen=True, kw_only=True):
    query: str
    filters: dict[str, Any] | None = None
    top_k: int = 10


class GetEvent(Call[replies.EventRecord], frozen=True):
    event_id: Text


class PageEvents(Call[replies.EventPage], frozen=True, kw_only=True):
    conversation_id: str | None = None
    event_types: list[str] | None = None
    before_cursor: str | None = None
    limit: int = 50


class GetArtifact(Call[replies.ArtifactMetadata], frozen=True):
    artifact_id: Text


class ReadArtifact(Call[replies.ArtifactRead], frozen=True, kw_only=True):
    artifact_id: Text
    offset: int = 0
    limit: int | None = None


class GetState(Call[replies.StateValue], frozen=True):
    scope: Text
    key: str


class SetState(Call[replies.Done], frozen=True):
    scope: Text
    key: str
    value: Any


class DeleteState(Call[replies.Done], frozen=True):
    scope: Text
    key: str


class ListState(Call[replies.StateKeys], frozen=True, kw_only=True):
    scope: Text
    prefix: str | None = None
    limit: int = 100


class _Stored(Call[Reply], Generic[Reply], frozen=True, kw_only=True):
    area: str = field(default="plugin", name="owner_type")


class GetStored(_Stored[replies.StoredValue], frozen=True, kw_only=True):
    key: str


class SetStored(_Stored[replies.Nothing], frozen=True, kw_only=True):
    key: str
    value: bytes = field(name="value_base64")


class DeleteStored(_Stored[replies.Nothing], frozen=True, kw_only=True):
    key: str


class ListStored(_Stored[replies.StorageKeys], frozen=True, kw_only=True):
    prefix: str | None = None


class GetFile(Call[replies.FileContent], frozen=True):
    file_key: Text


class GetVersion(Call[replies.Version], frozen=True):
    pass


class GetPrompt(Call[replies.SystemPrompt], frozen=True):
    pass


class AppendResult(Call[replies.RunEventRecord], frozen=True, kw_only=True):
    """A result sent by a call; it must be of the same run, and must change nothing else."""

    target_run_id: Text
    result: RunResult


class RequestAction(Call[replies.ActionTaken], frozen=True, kw_only=True):
    action: Text
    target: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None

"""Which coroutine does which action; the checks before it are `session`'s."""

from __future__ import annotations

from typing import Final

from agents.hostcalls import (
    appending,
    artifacts,
    embedding,
    event_log,
    files,
    history,
    knowledge,
    models,
    platform,
    state,
    storage,
    tools,
)
from agents.hostcalls.session import Deeds

DEEDS: Final = Deeds(
    calls={
        "invoke_llm": models.invoke,
        "invoke_rerank": models.rerank,
        "invoke_embedding": embedding.embed,
        "count_tokens": models.count_tokens,
        "get_tool_detail": tools.detail,
        "call_tool": tools.call,
        "retrieve_knowledge_base": knowledge.retrieve,
        "history_page": history.page,
        "history_search": history.search,
        "event_get": event_log.get,
        "event_page": event_log.page,
        "artifact_metadata": artifacts.metadata,
        "artifact_read": artifacts.read,
        "state_get": state.get,
        "state_set": state.put,
        "state_delete": state.delete,
        "state_list": state.keys,
        "get_binary_storage": storage.get,
        "set_binary_storage": storage.put,
        "delete_binary_storage": storage.delete,
        "get_binary_storage_keys": storage.keys,
        "get_config_file": files.get,
        "request_action": platform.request,
        "run_append_result": appending.append,
        "get_prompt": files.prompt,
        "get_langbot_version": files.version,
    },
    streams={"invoke_llm_stream": models.stream, "artifact_stream": artifacts.stream},
)

"""A thing that a run may not see does not exist for it: every Host call that names one (promise P10).

A stranger's run asks twice, about a thing that is there and about one that nobody has. The answers must
be the same but for the name that was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import pytest
from msgspec import to_builtins
from msgspec.structs import fields

from agents.host import gateway
from agents.host.action_registry import ACTIONS
from agents.host_protocol.errors import HostRefusal
from conversations.models import Attachment, Message
from tests.support.host.stage import Stage, manifest, run

pytestmark = pytest.mark.once

NAMES: Final = re.compile(r".*(_id|_uuid|_name|_cursor|key|filters)")
INSIDE: Final = {  # numbers in the run's own conversation, and the documents of a base that is granted
    ("history_page", "before_cursor"),
    ("history_page", "after_cursor"),
    ("retrieve_knowledge_base", "filters"),
}
# What a stranger is answered, by call and field. State and storage are areas of its own: there a key of
# somebody else's is one that is free. They are read, then deleted, then written.
ANSWERS: Final = {
    ("invoke_llm", "llm_model_uuid"): "unauthorized",
    ("invoke_llm_stream", "llm_model_uuid"): "unauthorized",
    ("invoke_rerank", "rerank_model_uuid"): "unauthorized",
    ("invoke_embedding", "embedding_model_uuid"): "unauthorized",
    ("count_tokens", "llm_model_uuid"): "unauthorized",
    ("get_tool_detail", "tool_name"): "unauthorized",
    ("call_tool", "tool_name"): "unauthorized",
    ("retrieve_knowledge_base", "kb_id"): "unauthorized",
    ("history_page", "conversation_id"): "unauthorized",
    ("history_search", "filters"): "unauthorized",
    ("event_get", "event_id"): "not_found",
    ("event_page", "conversation_id"): "unauthorized",
    ("event_page", "before_cursor"): "invalid_argument",
    ("artifact_metadata", "artifact_id"): "not_found",
    ("artifact_read", "artifact_id"): "not_found",
    ("artifact_stream", "artifact_id"): "not_found",
    ("state_get", "key"): "ok",
    ("state_delete", "key"): "ok",
    ("state_set", "key"): "ok",
    ("get_binary_storage", "key"): "not_found",
    ("delete_binary_storage", "key"): "ok",
    ("set_binary_storage", "key"): "ok",
    ("get_config_file", "file_key"): "unauthorized",
    ("run_append_result", "target_run_id"): "unauthorized",
}


def answered(action: str, payload: dict[str, Any], run_id: str, identity: str) -> tuple[str, Any]:
    """`ok` and what was told, or the refusal's code and all of it."""

    async def go() -> Any:
        asked = {"run_id": run_id, "identity": identity}
        if not ACTIONS[action].streams:
            return await gateway.call(action, payload, **asked)
        return [piece async for piece in gateway.stream(action, payload, **asked)]

    try:
        return "ok", run(go())
    except HostRefusal as refusal:
        return refusal.code, to_builtins(refusal.wire())


def test_what_a_run_may_not_see_is_answered_as_what_nobody_has(
    everything: Any, make_stage: Callable[..., Stage]
) -> None:
    stage, payloads, needs = everything
    named = {
        (action.name, field.encode_name)
        for action in ACTIONS.values()
        for field in fields(action.takes)
        if NAMES.fullmatch(field.encode_name)
    }
    assert named == ANSWERS.keys() | INSIDE
    stage.session(**needs)
    stranger = make_stage()
    stranger.session(of=manifest("plugin:acme/other/default"))
    key = {"key": uuid4().hex}
    payloads |= {name: payloads[name] | key for name, field in ANSWERS if field == "key"}
    for action in ("state_set", "set_binary_storage"):
        assert answered(action, payloads[action], stage.run.pk.hex, "acme/tester")[0] == "ok"
    found, owners = {}, {}
    for (action, field), there in _things(stage, payloads):
        asked = {"thing": there, "nothing": _nothing(there)}
        given = {
            name: answered(
                action,
                _payload(payloads[action], field, value, stranger.run.pk.hex),
                stranger.run.pk.hex,
                "acme/other",
            )
            for name, value in asked.items()
        }
        told = {name: json.dumps(given[name], default=str) for name in asked}
        masked = {name: told[name].replace(value, "…") for name, value in asked.items()}
        assert masked["thing"] == masked["nothing"], (action, field)
        found[action, field] = given["thing"][0]
        own = _payload(payloads[action], field, there, stage.run.pk.hex)
        owners[action, field] = answered(action, own, stage.run.pk.hex, "acme/tester")[0]
    assert found == ANSWERS
    assert owners == dict.fromkeys(ANSWERS, "ok")  # so all of them are there


def _things(stage: Stage, payloads: dict[str, dict[str, Any]]) -> list[tuple[tuple[str, str], str]]:
    """What each field names that is there for its owner's run."""
    there = {"conversation_id": stage.thread.pk.hex, "filters": stage.thread.pk.hex}
    there["before_cursor"] = f"{stage.run.pk.hex}-1"
    things = [
        ((action, field), there.get(field) or payloads[action][field]) for action, field in ANSWERS
    ]
    picture = _picture(stage)
    return things + [(at, picture) for at in ANSWERS if at[1] == "artifact_id"]


def _picture(stage: Stage) -> str:
    """The artifact id of an image that the owner has sent."""
    file_id, owner = uuid4(), stage.user.pk
    path = f"{owner}/{stage.thread.pk}/{file_id}.png"
    Attachment.objects.create(
        id=file_id,
        owner_id=owner,
        thread=str(stage.thread.pk),
        bucket="chat",
        path=path,
        check_at=datetime.now(UTC),
    )
    Message.objects.create(
        owner=stage.user,
        thread=stage.thread,
        run=stage.run,
        role="user",
        content="see",
        metadata={"user_message_attachments": {"path": path}},
    )
    return f"file-{file_id.hex}"


def _nothing(there: str) -> str:
    """A name of the same form that nothing has."""
    if re.search(r"[0-9a-f]{32}", there):
        return re.sub(r"[0-9a-f]{32}", uuid4().hex, there)
    return f"{there}{uuid4().hex}"


def _payload(payload: dict[str, Any], field: str, value: str, run_id: str) -> dict[str, Any]:
    given: Any = {"conversation_id": value} if field == "filters" else value
    said = {"result": payload["result"] | {"run_id": run_id}} if "result" in payload else {}
    return payload | said | {field: given}

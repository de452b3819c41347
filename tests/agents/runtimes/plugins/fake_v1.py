"""A plugin runtime of the first generation (specs/runner-host.md): `fake_v1.py ws PORT [june] | stdio`.

It lists what the SDK's own runtime does (git ba12a8b, 30 May 2026): every text with its nulls, keys
that nobody asked for, and runners that are none; with `june` as the SDK of June 2026 (git b6a9677).
Its one runner `plugin:old/probe/default` (`…/june`) does what the run's text says: `length`, `say …`,
`snapshots …`, `final DRAFT|WHOLE`, `state KEY VALUE` (said, then read), `tool`, `fail`, `sleep`,
`call ACTION JSON`, `rubbish`, `die`, `big N`, `flood N`, `flooded` (waits for its end), `unknown` (the
actions it was asked for and does not have).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Send = Callable[[dict[str, Any]], Awaitable[None]]
PIECE = 64 * 1024


def texts(english: str, chinese: str | None = None) -> dict[str, str | None]:
    """A text as the SDK's I18nObject is written: every language, null where there is none."""
    rest = dict.fromkeys(("zh_Hant", "ja_JP", "th_TH", "vi_VN", "es_ES"))
    return {"en_US": english, "zh_Hans": chinese, **rest}


CAPABILITIES = {
    "streaming": True,
    "tool_calling": False,
    "knowledge_retrieval": False,
    "multimodal_input": False,
    "event_context": True,
    "platform_api": False,
    "interrupt": False,
    "stateful_session": False,
    "self_managed_context": True,
}
PERMISSIONS = {
    "models": ["invoke", "stream"],
    "tools": ["detail", "call"],
    "knowledge_bases": ["list", "retrieve"],
    "history": ["page"],
    "events": [],
    "artifacts": ["metadata", "read"],
    "storage": ["plugin"],
    "files": ["config", "knowledge"],
    "platform_api": [],
}
CONFIG = [
    {
        "name": "tone",
        "type": "string",
        "label": texts("Tone"),
        "description": texts("How it speaks."),
        "required": None,
        "default": "calm",
        "options": None,
        "show_if": {"field": "tone", "operator": "eq", "value": None},
    },
    {
        "name": "speed",
        "type": "select",
        "label": texts("Speed", "速度"),
        "description": None,
        "required": True,
        "default": "fast",
        "options": [{"name": "fast", "label": {"en_US": "Fast", "zh_Hans": "快"}}],
        "show_if": None,
    },
]
FLOODED = asyncio.Event()
WRITTEN = [
    {
        "name": "speed",
        "type": "select",
        "label": {"en_US": "Speed", "zh_Hans": "速度"},
        "required": True,
        "default": "fast",
        "options": [{"name": "fast", "label": {"en_US": "Fast", "zh_Hans": "快"}}],
    }
]
"""As the plugin's own file has it, which the manifest repeats."""
RUNNER = {
    "plugin_author": "old",
    "plugin_name": "probe",
    "runner_name": "default",
    "runner_description": texts("Does what it is told.", "听话"),
    "manifest": {
        "apiVersion": "v1",
        "kind": "AgentRunner",
        "metadata": {
            "name": "default",
            "label": texts("Old probe", "旧探针"),
            "description": texts("Does what it is told.", "听话"),
            "icon": None,
        },
        "spec": {
            "context": {"ownership": "self_managed", "bootstrap": None, "max_inline_turns": 3},
            "protocol_version": "1",
            "config": WRITTEN,
            "capabilities": CAPABILITIES,
            "permissions": PERMISSIONS,
        },
        "execution": {"python": {"path": "default.py", "attr": "DefaultAgentRunner"}},
    },
    "protocol_version": "1",
    "capabilities": CAPABILITIES,
    "permissions": PERMISSIONS,
    "config": CONFIG,
}
TYPED = {
    "streaming": True,
    "tool_calling": False,
    "knowledge_retrieval": False,
    "multimodal_input": True,
    "skill_authoring": False,
    "interrupt": False,
    "steering": False,
}
ASKS = {
    "models": ["invoke", "stream"],
    "tools": [],
    "knowledge_bases": [],
    "history": ["page", "search"],
    "events": [],
    "storage": ["plugin"],
}
JUNE = {
    "plugin_author": "old",
    "plugin_name": "probe",
    "runner_name": "june",
    "runner_description": texts("As the SDK of June 2026 lists it."),
    "manifest": {
        "id": "plugin:old/probe/june",
        "name": "june",
        "label": texts("June probe"),
        "description": texts("As the SDK of June 2026 lists it."),
        "capabilities": TYPED,
        "permissions": ASKS,
        "config_schema": CONFIG,
        "metadata": {"plugin_author": "old", "plugin_name": "probe", "runner_name": "june"},
    },
    "capabilities": TYPED,
    "permissions": ASKS,
    "config": CONFIG,
}
NULLS = dict.fromkeys(
    ("resp_message_id", "name", "tool_calls", "tool_call_id", "provider_specific_fields")
)
INVALID = {"plugin_author": "old", "plugin_name": "bad/name", "runner_name": "x"}


class Session:
    """One connection of a Host."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.unknown: list[str] = []
        self.last = random.randrange(100_000)
        self.waiting: dict[int, asyncio.Queue[dict[str, Any]]] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def take(self, document: dict[str, Any]) -> None:
        if "action" in document:
            task = asyncio.create_task(self.serve(document))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        elif document.get("seq_id") in self.waiting:
            self.waiting[document["seq_id"]].put_nowait(document)

    async def reply(self, asked: dict[str, Any], data: dict[str, Any], **more: Any) -> None:
        whole = {"seq_id": asked["seq_id"], "code": 0, "message": "success", "data": data}
        await self.send(whole | {"chunk_status": "continue"} | more)

    async def serve(self, asked: dict[str, Any]) -> None:
        match asked["action"]:
            case "__ping":
                await self.reply(asked, {"message": "pong"})
            case "list_agent_runners":
                listed = [INVALID, JUNE if "june" in sys.argv else RUNNER, {"rubbish": True}]
                await self.reply(asked, {"runners": listed})
            case "run_agent":
                await self.run(asked)
            case name:
                self.unknown.append(name)
                told = f"ValueError: Action {name} not found"
                await self.reply(asked, {}, code=1, message=told)

    async def run(self, asked: dict[str, Any]) -> None:
        context = asked["data"]["context"]

        async def say(kind: str, **data: Any) -> None:
            result = {"run_id": context["run_id"], "type": kind, "data": data}
            await self.reply(asked, result | {"sequence": None, "timestamp": None})

        async def tell(text: str) -> None:
            more = {"all_content": None, "is_final": False, "msg_sequence": 0}
            await say("message.delta", chunk=NULLS | more | {"role": "assistant", "content": text})

        command, _, rest = context["input"]["text"].partition(" ")
        match command:
            case "say":
                said = ""
                for piece in rest.split("|"):
                    said += piece
                    await tell(said)
            case "snapshots":
                for text in rest.split("|"):
                    await tell(text)
            case "final":
                draft, _, whole = rest.partition("|")
                await tell(draft)
                await say("message.completed", message=NULLS | {"role": "assistant", "content": whole})
            case "state":
                key, _, value = rest.partition(" ")
                for number in range(20):
                    found = {"scope": "conversation", "key": key, "value": f"{value}{number}"}
                    await say("state.updated", **found)
                await tell(
                    json.dumps(await self.call("state_get", context, scope="conversation", key=key))
                )
            case "tool":
                call = {"tool_call_id": "c", "tool_name": "its.own"}
                await say("tool.call.started", **call, parameters={})
                await say("tool.call.completed", **call, result={}, error=None)
            case "fail":
                await say("run.failed", error="It broke.", code="old.broken", retryable=False)
            case "sleep":
                await tell("…")
                await asyncio.sleep(600)
            case "call":
                action, _, data = rest.partition(" ")
                await tell(json.dumps(await self.call(action, context, **json.loads(data or "{}"))))
            case "rubbish":
                await self.send_text("this is no JSON")
                await tell("after the rubbish")
            case "die":
                os._exit(3)
            case "big":
                await tell("b" * int(rest))
            case "flood":
                for _ in range(int(rest)):
                    await tell("f" * PIECE)
                FLOODED.set()
            case "flooded":
                await FLOODED.wait()
                await tell("yes")
            case "unknown":
                await tell(json.dumps(self.unknown))
            case "context":
                await tell(json.dumps(context))
            case _:
                await tell(f"{len(context['input']['text'])} characters")
        await say("run.completed", finish_reason="stop")
        await self.reply(asked, {}, chunk_status="end")

    async def call(self, action: str, context: dict[str, Any], **data: Any) -> list[dict[str, Any]]:
        """What the Host answers a call of the run's."""
        payload = {"run_id": context["run_id"], "caller_plugin_identity": "old/probe"}
        return await self.ask(action, payload | data)

    async def send_text(self, text: str) -> None:
        raise NotImplementedError

    async def ask(self, action: str, data: dict[str, Any]) -> list[dict[str, Any]]:
        """What the Host answers: all parts, to the end or the refusal."""
        self.last += 1
        number, queue = self.last, asyncio.Queue[dict[str, Any]]()
        self.waiting[number] = queue
        await self.send({"seq_id": number, "action": action, "data": data})
        parts = [await asyncio.wait_for(queue.get(), 20)]
        while (
            action == "invoke_llm_stream"
            and parts[-1]["code"] == 0
            and parts[-1]["chunk_status"] != "end"
        ):
            parts.append(await asyncio.wait_for(queue.get(), 20))
        return parts


async def over_websocket(port: int) -> None:
    from websockets.asyncio.server import serve

    async def connected(socket: Any) -> None:
        sending = asyncio.Lock()

        async def send_text(text: str) -> None:
            async with sending:
                for start in range(0, len(text), PIECE):
                    await socket.send(text[start : start + PIECE])

        async def send(document: dict[str, Any]) -> None:
            await send_text(json.dumps(document))

        session = Session(send)
        session.send_text = send_text  # type: ignore[method-assign]
        held = ""
        async for message in socket:
            held += message
            try:
                document = json.loads(held)
            except ValueError:
                continue
            held = ""
            session.take(document)

    async with serve(connected, "127.0.0.1", port, max_size=1024 * 1024) as server:
        await server.serve_forever()


async def over_stdio() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def write(value: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(value) + "\n")

    async def send(document: dict[str, Any]) -> None:
        text = json.dumps(document)
        if len(text) <= 16 * 1024:
            write(document)
        else:
            write({"type": "chunk_start", "total_size": len(text)})
            for start in range(0, len(text), 16 * 1024):
                write({"type": "chunk_data", "data": text[start : start + 16 * 1024], "offset": start})
            write({"type": "chunk_end"})
        sys.stdout.flush()

    async def send_text(text: str) -> None:
        sys.stdout.write(text + "\n")

    session = Session(send)
    session.send_text = send_text  # type: ignore[method-assign]
    chunks: list[str] | None = None
    while line := await reader.readline():
        document = json.loads(line)
        match document.get("type"):
            case "chunk_start":
                chunks = []
            case "chunk_data" if chunks is not None:
                chunks.append(document["data"])
            case "chunk_end" if chunks is not None:
                session.take(json.loads("".join(chunks)))
                chunks = None
            case _:
                session.take(document)


if __name__ == "__main__":
    asyncio.run(over_websocket(int(sys.argv[2])) if sys.argv[1] == "ws" else over_stdio())

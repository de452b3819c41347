"""The runner of the test plugins, in the real runtime: it does what the run's text says, as JSON steps.

`[["say", "a", "b"], ["api", "state_get", ["conversation", "k"]], …]`; what came of the steps is the last
message, as JSON. `raw` goes round the SDK's own checks, as a hostile plugin would.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from typing import Any

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.definition.plugin import BasePlugin
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult
from langbot_plugin.entities.io.actions.enums import PluginToRuntimeAction, RuntimeToLangBotAction


class ProbePlugin(BasePlugin):  # type: ignore[misc]
    async def initialize(self) -> None:
        pass


class Probe(Runner):  # type: ignore[misc]
    async def run(self, ctx: RunnerContext) -> Any:
        if ctx.event.event_type == "approval.decided":
            told = Message(role="assistant", content=json.dumps(ctx.event.data))
            yield RunnerResult.message_completed(ctx.run_id, told)
            return
        text = ctx.input.to_text()
        if not text.startswith("[["):
            chunk = MessageChunk(role="assistant", content=f"{len(text)} characters")
            yield RunnerResult.message_delta(ctx.run_id, chunk)
            return
        answers: list[Any] = []
        for op, *rest in json.loads(text):
            if op == "say":
                said = ""
                for piece in rest:
                    said += piece
                    chunk = MessageChunk(role="assistant", content=said)
                    yield RunnerResult.message_delta(ctx.run_id, chunk)
            elif op == "result":
                yield RunnerResult(
                    run_id=rest[2] if len(rest) > 2 else ctx.run_id, type=rest[0], data=rest[1]
                )
            elif op == "burst":
                for number in range(rest[0]):
                    chunk = MessageChunk(role="assistant", content="x" * (number + 1))
                    yield RunnerResult.message_delta(ctx.run_id, chunk)
            else:
                answers.append(await self._answer(ctx, op, rest))
        content = json.dumps(answers)
        yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=content))

    async def _answer(self, ctx: RunnerContext, op: str, rest: list[Any]) -> Any:
        try:
            return {"ok": await self._do(ctx, op, rest)}
        except Exception as error:
            return {"error": str(error), "kind": type(error).__name__}

    async def _do(self, ctx: RunnerContext, op: str, rest: list[Any]) -> Any:
        match op:
            case "sleep":
                await asyncio.sleep(rest[0])
            case "crash":
                os._exit(3)
            case "print":
                print("this is no JSON {", flush=True)
            case "time":
                begun = time.perf_counter()
                for _ in range(rest[0]):
                    await getattr(ctx.api, rest[1])(*rest[2])
                return time.perf_counter() - begun
            case "context":
                return ctx.model_dump(mode="json")
            case "environment":
                return dict(os.environ)
            case "api":
                return _plain(await getattr(ctx.api, rest[0])(*rest[1], **(rest[2] if rest[2:] else {})))
            case "store":
                await ctx.api.set_plugin_storage(rest[0], rest[1].encode())
            case "stream":
                return "".join(
                    [
                        str(chunk.content or "")
                        async for chunk in ctx.api.invoke_llm_stream(
                            rest[0], [Message(role="user", content=rest[1])]
                        )
                    ]
                )
            case "ask":
                return _plain(await ctx.api.invoke_llm(rest[0], [Message(role="user", content=rest[1])]))
            case "raw":
                return await self._raw(rest[0], rest[1], ctx)
        return None

    async def _raw(self, action: str, data: dict[str, Any], ctx: RunnerContext) -> Any:
        found = next(
            kind(action)
            for kind in (PluginToRuntimeAction, RuntimeToLangBotAction)
            if action in {one.value for one in kind}
        )
        payload = {"run_id": ctx.run_id} | data
        if "value_size" in payload:
            payload["value_base64"] = base64.b64encode(bytes(payload.pop("value_size"))).decode()
        if "state_size" in payload:
            payload["value"] = "x" * payload.pop("state_size")
        return await self._plugin_runtime_handler.call_action(found, payload, 30)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value

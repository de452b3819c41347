"""A command-line agent as such tools are: `stub.py [--resume ID] [--text] [--mcp-config FILE]`.

It reads its prompt from stdin, keeps its sessions as files in its working directory, prints JSON lines
in Claude Code's dialect (`codex …`: in Codex's), and does what the prompt says: `say …`, `turns`,
`tools`, `call`, `env`, `files`, `look`, `sleep`, `flood`, `fail`, `nothing`, `rubbish …`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4


def out(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def delta(text: str) -> None:
    out(
        type="stream_event",
        event={"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--mcp-config", default="")
    parser.add_argument("--prompt", default="")
    asked = parser.parse_args()
    prompt = asked.prompt or sys.stdin.read()
    if asked.resume and not Path(asked.resume).is_file():
        print(f"No conversation found with session ID: {asked.resume}", file=sys.stderr)
        sys.exit(1)
    session = asked.resume or uuid4().hex
    with Path(session).open("a") as file:
        file.write(prompt.splitlines()[0] + "\n")
    turns = len(Path(session).read_text().splitlines())
    command, _, rest = prompt.partition(" ")
    if asked.text:
        print(f"plain {rest}\nsecond line")
        return
    if command == "codex":
        codex(session, rest)
        return
    out(type="system", subtype="init", session_id=session, tools=[])
    answer = act(command, rest, turns, asked.mcp_config)
    if answer is not None:
        for piece in (answer[: len(answer) // 2], answer[len(answer) // 2 :]):
            delta(piece)
        out(
            type="assistant", message={"content": [{"type": "text", "text": answer}]}, session_id=session
        )
    usage = {"input_tokens": 5, "output_tokens": 7}
    out(
        type="result",
        subtype="success",
        is_error=False,
        result=answer or "",
        session_id=session,
        usage=usage,
    )


def act(command: str, rest: str, turns: int, mcp_config: str) -> str | None:
    match command:
        case "say":
            return rest
        case "turns":
            return f"turn {turns}"
        case "tools":
            return asyncio.run(tools(mcp_config, rest))
        case "call":
            return asyncio.run(call(mcp_config, rest))
        case "env":
            return json.dumps(dict(os.environ))
        case "files":
            context = json.loads(Path(os.environ["PARLEY_CONTEXT"]).read_text())
            return json.dumps([context["run_id"], context["input"]["text"], str(Path.cwd())])
        case "look":
            named = [line[1:-1].partition(": ") for line in rest.splitlines()[1:]]
            return json.dumps([[name, Path(path).read_bytes().hex()] for name, _, path in named])
        case "sleep":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path(rest).write_text(f"{os.getpid()} {child.pid}")
            delta("sleeping")
            time.sleep(600)
        case "flood":
            for _ in range(40):
                print("x" * 1024 * 1024, flush=True)
        case "fail":
            delta("half a wo")
            print(f"it broke; {os.environ.get('HARNESS_SECRET', '')}", file=sys.stderr)
            sys.exit(3)
        case "rubbish":
            print("this is no JSON\n[]\n{}\n" + '{"type": "assistant", "message": 7}', flush=True)
            return rest
    return None


async def tools(mcp_config: str, query: str) -> str:
    """What the run's MCP server offers and answers, by the official client."""
    import httpx
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    told = Path(mcp_config).read_text()  # noqa: ASYNC240 (nothing else runs here)
    server = json.loads(told)["mcpServers"]["parley"]
    assert server["url"] == os.environ["PARLEY_MCP_URL"]
    async with httpx.AsyncClient() as stranger:
        refused = await stranger.post(server["url"], headers={"Authorization": "Bearer guess"})
    web = httpx_client(server["headers"])
    async with web, Client(streamable_http_client(server["url"], http_client=web)) as client:
        offered = sorted(tool.name for tool in (await client.list_tools()).tools)
        out(
            type="assistant",
            message={"content": [{"type": "tool_use", "id": "t1", "name": "search", "input": {}}]},
        )
        found = await client.call_tool("gymbro_exercise_search", {"query": query, "top_k": 1})
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
        out(type="user", message={"content": [result]})
        unknown = await client.call_tool("web_search_exa", {"query": query})
    told = getattr(found.content[0], "text", "")
    return json.dumps([refused.status_code, offered, json.loads(told), unknown.is_error])


async def call(mcp_config: str, name: str) -> str:
    """What the server offers, and what this tool of it answers."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    told = Path(mcp_config).read_text()  # noqa: ASYNC240 (nothing else runs here)
    server = json.loads(told)["mcpServers"]["parley"]
    web = httpx_client(server["headers"])
    async with web, Client(streamable_http_client(server["url"], http_client=web)) as client:
        offered = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool(name, {"query": "x"})
    return json.dumps([offered, json.loads(getattr(found.content[0], "text", ""))])


def httpx_client(headers: dict[str, str]) -> Any:
    from mcp.shared._httpx_utils import create_mcp_http_client

    return create_mcp_http_client(headers=headers)


def codex(session: str, text: str) -> None:
    out(type="thread.started", thread_id=session)
    out(type="item.started", item={"id": "i0", "type": "command_execution", "command": "ls"})
    out(
        type="item.completed",
        item={
            "id": "i0",
            "type": "command_execution",
            "command": "ls",
            "exit_code": 0,
            "aggregated_output": "a",
        },
    )
    out(type="item.completed", item={"id": "i1", "type": "agent_message", "text": text})
    out(type="turn.completed", usage={"input_tokens": 3, "output_tokens": 4})


if __name__ == "__main__":
    main()

"""Tools of real MCP servers, through whole runs on the real stack."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

from agents.models import McpServer
from agents.tools.mcp.servers import StdioRefused, check_stdio, is_served
from config.database import run_sync
from conversations.events import ToolCallStarted
from conversations.log import event_log
from conversations.models import Message, Run
from tests.conftest import Server
from tests.support.admin_pages import sign_in
from tests.support.client import Client, ScriptedModel, read_sse
from tests.support.fakes.fake_model import FakeModel, text, tool_calls
from tests.support.fakes.mcp_host import PROGRAM, McpHost, wait_until
from tests.support.log_lines import every_line

pytestmark = pytest.mark.once

CANARY = "cAnArY" + uuid4().hex


@pytest.fixture
def staff() -> Any:
    """A browser in which a superuser is signed in; not in a transaction, the worker sees its rows."""
    return sign_in(is_superuser=True)[0]


@pytest.fixture
def begin(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> Callable[..., tuple[str, str]]:
    """Start a run whose model makes these calls and then says Done; run id and script."""

    def start(*calls: tuple[str, dict[str, Any]]) -> tuple[str, str]:
        name = uuid4().hex
        made = [(f"c{n}", tool, json.dumps(given)) for n, (tool, given) in enumerate(calls)]
        provider.script(tool_calls(*made), text("Done."), name=name)
        body = {
            "threadId": str(uuid4()),
            "runId": uuid4().hex,
            "messages": [{"id": "1", "role": "user", "content": "go"}],
            "forwardedProps": {"model": scripted(f"script:{name}").name},
        }
        return client.http.post("/api/v1/agent/runs", json=body).json()["taskId"], name

    return start


@pytest.fixture
def call(client: Client, begin: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Run such a run to its end: the results, in the order of the calls."""

    def run(*calls: tuple[str, dict[str, Any]]) -> list[Any]:
        run_id, _ = begin(*calls)
        return finish(client, run_id)

    return run


def finish(client: Client, run_id: str) -> list[Any]:
    with client.http.stream("GET", f"/api/v1/agent/runs/{run_id}/events") as response:
        seen = [frame.data for frame in read_sse(response)]
    assert Run.objects.get(pk=run_id).status == "completed"
    found = [event for event in seen if event["type"] == "TOOL_CALL_RESULT"]
    return [json.loads(e["content"]) for e in sorted(found, key=lambda e: str(e["toolCallId"]))]


@pytest.fixture
def facts_of(server: Server) -> Callable[[str], list[Any]]:
    """What the log holds of a run."""

    async def read(run_id: str) -> list[Any]:
        return [event.fact async for batch in event_log.read(UUID(run_id)) for event in batch.events]

    def of(run_id: str) -> list[Any]:
        return asyncio.run_coroutine_threadsafe(read(run_id), server.loop).result(10)

    return of


@pytest.mark.parametrize("transport", ["streamable_http", "sse", "stdio"])
def test_a_model_calls_a_tool_of_a_server(
    transport: str,
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    begin: Callable[..., Any],
    client: Client,
    provider: FakeModel,
    facts_of: Callable[..., list[Any]],
    tmp_path: Path,
) -> None:
    if transport == "stdio":
        one = McpHost("stdio", tmp_path / "notes")
        more = {
            "url": "",
            "command": sys.executable,
            "args": [str(PROGRAM), "stdio", "0", str(one.notes)],
        }
    else:
        one, more = host(transport), {}
    enter(one, **more)
    tools = offered(one.label)
    name = f"{one.label}__add"
    assert tools[name].idempotent
    assert not tools[f"{one.label}__hang"].idempotent
    run_id, script = begin((name, {"a": 2, "b": 3}))
    assert finish(client, run_id) == [{"structured": {"sum": 5}}]
    assert one.noted() == ["add 2 3"]
    asked = [request.body for request in provider.requests_for(f"script:{script}")]
    shown = {tool["function"]["name"]: tool["function"] for tool in asked[0]["tools"]}
    assert shown[name]["description"] == "Adds two numbers."
    assert sorted(shown[name]["parameters"]["properties"]) == ["a", "b"]
    assert json.loads(asked[1]["messages"][-1]["content"]) == {"structured": {"sum": 5}}
    assert Message.objects.get(run_id=run_id, role="tool").content
    (started,) = (fact for fact in facts_of(run_id) if isinstance(fact, ToolCallStarted))
    assert (started.kind, started.server_label, started.tool_name) == ("mcp", one.label, name)


def test_what_is_not_allowed_is_not_offered_and_a_change_counts_at_once(
    host: Callable[..., McpHost], enter: Callable[..., McpServer], offered: Callable[..., Any]
) -> None:
    one = host()
    row = enter(one, all_tools=False, allowed_tools=["add", "no-such"])
    assert list(offered(one.label)) == [f"{one.label}__add"]
    McpServer.objects.filter(pk=row.pk).update(allowed_tools=["fail"])
    wait_until(lambda: list(offered(one.label)) == [f"{one.label}__fail"])
    McpServer.objects.filter(pk=row.pk).update(is_active=False)
    offered(one.label, none=True)


def test_each_kind_of_result_comes_as_json(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    one = host()
    enter(one)
    offered(one.label)
    failed, picture, huge, wrong = call(
        (f"{one.label}__fail", {}),
        (f"{one.label}__picture", {}),
        (f"{one.label}__huge", {"size": 3_000_000}),
        (f"{one.label}__add", {"a": "no number"}),
    )
    assert failed["error"]["code"] == "mcp_tool_error"
    assert "fail" in failed["error"]["message"]
    assert picture["left_out"] == [{"type": "image", "mime_type": "image/png", "size_bytes": 3006}]
    assert huge["artifact"]["size_bytes"] > 3_000_000
    assert len(huge["head"]) == 12_000
    assert wrong["error"]["code"] == "mcp_tool_error"
    assert "a" in wrong["error"]["message"]


def test_evil_names_and_schemas_are_made_fit_or_left_out(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    one = host()
    enter(one)
    tools = offered(one.label)
    short = {name.removeprefix(f"{one.label}__") for name in tools}
    assert not short & {"remote", "wrong", "mixed"}
    assert "elsewhere" in short  # what a schema calls its own is fetched by nobody
    for name, tool in tools.items():
        assert len(name) <= 64
        assert name.replace("_", "").replace("-", "").isalnum()
        assert name.isascii()
        assert tool.description.isprintable() or "\n" in tool.description
    (strange,) = (name for name in tools if "with_slash" in name)
    slow, doubling = f"{one.label}__slow", f"{one.label}__doubling"
    said = call((strange, {}), (slow, {"a": "a" * 60 + "!"}), (doubling, {"a": "x"}))
    assert said == [{"structured": {"result": "evil"}}] * 3


def test_two_servers_with_a_tool_of_the_same_name_are_told_apart(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    one, two = host(), host("sse")
    for each in (one, two):
        enter(each)
        offered(each.label)
    results = call((f"{one.label}__add", {"a": 1, "b": 1}), (f"{two.label}__add", {"a": 2, "b": 2}))
    assert [found["structured"]["sum"] for found in results] == [2, 4]
    assert (one.noted(), two.noted()) == (["add 1 1"], ["add 2 2"])


def test_a_server_killed_in_a_call_fails_the_call_alone_and_comes_back(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    begin: Callable[..., Any],
    call: Callable[..., Any],
    client: Client,
) -> None:
    one = host()
    enter(one)
    offered(one.label)
    run_id, _ = begin((f"{one.label}__hang", {}))
    wait_until(lambda: "hang begins" in one.noted())
    one.kill()
    (failed,) = finish(client, run_id)
    assert failed["error"]["code"] == "mcp_unreachable"
    offered(one.label, none=True)
    assert call((f"{one.label}__add", {"a": 1, "b": 2}))[0]["error"]["code"] == "tool_not_offered"
    one.start()
    offered(one.label)
    assert call((f"{one.label}__add", {"a": 1, "b": 2})) == [{"structured": {"sum": 3}}]


def test_a_call_that_hangs_ends_by_its_time_out_and_is_cancelled_on_the_server(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    one = host()
    enter(one, timeout_s=1)
    offered(one.label)
    assert call((f"{one.label}__hang", {}))[0]["error"]["code"] == "tool_timeout"
    wait_until(lambda: one.noted() == ["hang begins", "hang ends"])


def test_cancelling_the_run_cancels_the_call(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    begin: Callable[..., Any],
    client: Client,
) -> None:
    one = host("sse")
    enter(one)
    offered(one.label)
    run_id, _ = begin((f"{one.label}__hang", {}))
    wait_until(lambda: "hang begins" in one.noted())
    client.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
    client.wait_for(run_id, "cancelled", "failed")
    wait_until(lambda: one.noted() == ["hang begins", "hang ends"])


@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
def test_a_tool_that_comes_later_is_offered_when_the_server_says_so(
    transport: str,
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    one = host(transport)
    enter(one)
    offered(one.label)
    assert call((f"{one.label}__grow", {})) == [{"structured": {"result": "grown"}}]
    wait_until(lambda: f"{one.label}__late" in offered(one.label), 10)


def test_no_header_stands_in_a_line_an_event_or_a_page(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    begin: Callable[..., Any],
    client: Client,
    staff: Any,
) -> None:
    with every_line() as written:
        one = host()
        row = enter(one, headers=f"Authorization: Bearer {CANARY}\nX-Key: {CANARY}2")
        offered(one.label)
        run_id, _ = begin((f"{one.label}__reveal", {}))
        (said,) = finish(client, run_id)
        assert "authorization" in json.dumps(said)
        assert "***" in json.dumps(said)
        assert CANARY not in json.dumps(said)
        page = staff.get(f"/admin/agents/mcpserver/{row.pk}/change/").content.decode()
        assert "Authorization: Bearer cAnA***" in page
        assert CANARY not in page
        one.kill()
        tested = staff.post(f"/admin/agents/mcpserver/{row.pk}/test/").content.decode()
        assert "Nothing answers at this address." in tested
    assert "mcp server connected" in written.getvalue()
    assert CANARY not in written.getvalue()
    row.refresh_from_db()
    assert row.headers is not None
    assert CANARY not in row.headers.sealed + row.headers.mask


def test_test_connection_lists_the_tools_or_says_why_not(
    host: Callable[..., McpHost], enter: Callable[..., McpServer], staff: Any
) -> None:
    one = host()
    row = enter(one, is_active=False, all_tools=False, allowed_tools=["add"])
    path = f"/admin/agents/mcpserver/{row.pk}/test/"
    assert "Connect to" in staff.get(path).content.decode()
    page = staff.post(path).content.decode()
    for words in (
        "Connected: ",
        "Adds two numbers.",
        f"{one.label}__add",
        "&quot;integer&quot;",
        "offered",
    ):
        assert words in page
    McpServer.objects.filter(pk=row.pk).update(url=one.url + "/nowhere")
    assert "The server answers 404: check the URL." in staff.post(path).content.decode()


def test_test_connection_hides_what_the_server_repeats_of_its_secrets(
    enter: Callable[..., McpServer], staff: Any, tmp_path: Path
) -> None:
    one = McpHost("stdio", tmp_path / "notes")
    line = {"command": sys.executable, "args": [str(PROGRAM), "stdio", "0", str(one.notes)]}
    row = enter(one, env=f'MCP_TEST_TOKEN={CANARY}"\\', url="", is_active=False, **line)
    page = staff.post(f"/admin/agents/mcpserver/{row.pk}/test/").content.decode()
    assert "Connected: " in page
    assert "Given ***" in page
    assert CANARY not in page


def test_a_form_that_is_refused_does_not_show_the_secrets_again(staff: Any) -> None:
    typed = {"new_headers": f"X-Key: {CANARY}", "new_env": f"MCP_TEST_TOKEN={CANARY}"}
    page = staff.post("/admin/agents/mcpserver/add/", FORM | typed).content.decode()
    assert "MCP_STDIO_COMMANDS" in page
    assert CANARY not in page


FORM = {
    "label": "mine", "transport": "stdio", "url": "", "command": "/bin/sh", "args": "-c\nid",
    "allowed_tools": "", "timeout_s": "60", "is_active": "on", "new_headers": "", "new_env": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, "MCP_STDIO_COMMANDS"),
        (
            {"command": sys.executable, "args": f"{PROGRAM}\nx", "new_env": "LD_PRELOAD=/x"},
            "MCP_STDIO_ENV",
        ),
        ({"transport": "sse"}, "Enter the server&#x27;s address."),
        ({"transport": "sse", "url": "http://u:p@x/"}, "Leave user name and password out"),
        ({"label": "a__b"}, "Use small letters"),
        ({"transport": "sse", "url": "http://x/", "new_headers": "no colon"}, "Line 1 is not"),
        ({"transport": "sse", "url": "http://x/", "new_headers": "Host: x"}, "Line 1 is not"),
    ],
)
def test_admin_refuses_what_cannot_be_or_may_not(changed: dict[str, str], told: str, staff: Any) -> None:
    page = staff.post("/admin/agents/mcpserver/add/", FORM | changed)
    assert page.status_code == 200
    assert told in page.content.decode()
    assert not McpServer.objects.filter(label=(FORM | changed)["label"]).exists()


def test_stored_headers_do_not_follow_to_another_address(
    enter: Callable[..., McpServer], staff: Any, tmp_path: Path
) -> None:
    one = McpHost("sse", tmp_path / "notes")
    row = enter(one, headers=f"X-Key: {CANARY}", is_active=False)
    form = FORM | {"label": one.label, "transport": "sse", "command": "", "args": "", "is_active": ""}
    path = f"/admin/agents/mcpserver/{row.pk}/change/"
    page = staff.post(path, form | {"url": "http://elsewhere.example/sse"})
    assert "needs its headers entered again" in page.content.decode()
    assert staff.post(path, form | {"url": one.url + "2"}).status_code == 302
    row.refresh_from_db()
    assert (row.url, row.headers_id is not None) == (one.url + "2", True)


def test_only_whole_command_lines_are_allowed(settings: Settings) -> None:
    settings.MCP_STDIO_COMMANDS = ["uvx mcp-time", "/opt/files *", "*"]
    check_stdio("uvx", ("mcp-time",), {})
    check_stdio("/opt/files", ("--root", "/x"), {})
    for command, args in (("uvx", ()), ("uvx", ("mcp-time", "x")), ("/bin/sh", ()), ("/opt/files2", ())):
        with pytest.raises(StdioRefused):
            check_stdio(command, args, {})


def test_a_server_whose_calls_need_approval_is_not_called_without(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    begin: Callable[..., Any],
    client: Client,
    facts_of: Callable[..., list[Any]],
) -> None:
    one = host()
    enter(one, requires_approval=True)
    offered(one.label)
    run_id, _ = begin((f"{one.label}__add", {"a": 1, "b": 1}))
    assert finish(client, run_id) == []
    assert Run.objects.get(pk=run_id).finish_reason == "interrupt"
    (started,) = (fact for fact in facts_of(run_id) if isinstance(fact, ToolCallStarted))
    assert (started.kind, started.server_label) == ("mcp", one.label)
    assert one.noted() == []
    waiting = client.http.get("/api/v1/agent/approvals", params={"status": "pending"}).json()
    (approval,) = waiting["approvals"]
    address = f"/api/v1/agent/approvals/{approval['id']}"
    edited = client.http.post(address, json={"approve": True, "arguments": {"a": 2, "b": 2}})
    assert edited.status_code == 200, edited.text


def test_the_tools_of_a_server_that_is_switched_on_are_known_by_their_label(
    host: Callable[..., McpHost], enter: Callable[..., McpServer]
) -> None:
    row = enter(host())
    assert run_sync(is_served(f"{row.label}__anything"))
    assert not run_sync(is_served(row.label))
    McpServer.objects.filter(pk=row.pk).update(is_active=False)
    assert not run_sync(is_served(f"{row.label}__anything"))

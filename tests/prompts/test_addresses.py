"""No connection is opened to an address that is never asked, whoever entered it and however."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from django.test import Client as Browser
from pytest_django import Settings

from agents.models import McpServer, PluginRuntime
from agents.runtimes.plugins.connection_check import check_connection
from agents.tools.mcp.sdk_client import FailureTrail
from agents.tools.mcp.sdk_client import check_connection as look_at_mcp
from agents.tools.mcp.secret_pairs import server_from_row
from prompts import outgoing_connections
from prompts.addresses import REFUSED
from prompts.endpoints import secrets
from tests.support.admin_pages import address, sign_in
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel
from tests.support.fakes.mcp_host import McpHost

pytestmark = pytest.mark.once

METADATA = "169.254.169.254"
NAME = "metadata.example"
SPELLINGS = (METADATA, "2852039166", "0xA9FEA9FE", "[::ffff:169.254.169.254]", "[fe80::1]", NAME)
ALLOWED = "127.0.0.1"

_watching: list[list[str]] = []


def _note(event: str, given: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(given[1], tuple):
        for seen in _watching:
            seen.append(str(given[1][0]))


sys.addaudithook(_note)


@pytest.fixture
def connected() -> Iterator[list[str]]:
    """The addresses to which a socket of this process has tried to connect."""
    seen: list[str] = []
    _watching.append(seen)
    yield seen
    _watching.remove(seen)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the resolver find these addresses for a name, one answer a look-up, the last for ever."""
    real = socket.getaddrinfo

    def name(host: str, *answers: list[str]) -> None:
        left = list(answers)

        def found(asked: Any, port: Any, *rest: Any, **more: Any) -> Any:
            if asked not in (host, host.encode()):
                return real(asked, port, *rest, **more)
            answer = left.pop(0) if len(left) > 1 else left[0]
            return [
                (_family(one), socket.SOCK_STREAM, 6, "", _place(one, int(port or 0))) for one in answer
            ]

        monkeypatch.setattr(socket, "getaddrinfo", found)

    return name


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _place(address: str, port: int) -> tuple[Any, ...]:
    return (address, port, 0, 0) if ":" in address else (address, port)


@pytest.fixture(autouse=True)
def metadata(named: Callable[..., None]) -> None:
    named(NAME, [METADATA, "fe80::1"])


def check_untouched(connected: list[str]) -> None:
    assert not [one for one in connected if one.startswith(("169.254.", "fe80:", "::ffff:"))]


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", SPELLINGS)
def test_a_run_on_such_an_endpoint_fails_and_connects_nowhere(
    client: Client, connected: list[str], host: str
) -> None:
    model = ScriptedModel.make(f"http://{host}:1/v1", ("any",))
    frames = client.watch(client.start("hi", model.name)["run_id"])
    assert frames[-1].data["code"] == "provider_address_refused"
    assert host not in frames[-1].data["message"]
    assert connected  # the database at least: the watch works
    check_untouched(connected)


def test_a_name_with_one_good_address_is_asked_there_alone(
    client: Client, provider: FakeModel, connected: list[str], named: Callable[..., None]
) -> None:
    named("mixed.example", [METADATA, ALLOWED])
    model = ScriptedModel.make(provider.base_url.replace(ALLOWED, "mixed.example"), ("plain",))
    assert client.watch(client.start("hi", model.name)["run_id"])[-1].event == "completed"
    check_untouched(connected)


def test_a_name_that_leads_elsewhere_the_second_time_is_refused_then(
    connected: list[str], named: Callable[..., None]
) -> None:
    named("rebound.example", [ALLOWED], [METADATA])

    async def twice(port: int) -> None:
        (await outgoing_connections.connect("rebound.example", port)).close()
        with pytest.raises(outgoing_connections.AddressRefused):
            await outgoing_connections.connect("rebound.example", port)

    with socket.create_server((ALLOWED, 0)) as listener:
        asyncio.run(twice(listener.getsockname()[1]))
    assert ALLOWED in connected
    check_untouched(connected)


def test_of_several_addresses_the_first_that_answers_is_taken(named: Callable[..., None]) -> None:
    named("two.example", ["::1", ALLOWED])

    async def reach(port: int) -> Any:
        with await outgoing_connections.connect("two.example", port) as found:
            return found.getpeername()[0]

    with socket.create_server((ALLOWED, 0)) as listener:
        assert asyncio.run(reach(listener.getsockname()[1])) == ALLOWED


# --- MCP servers ----------------------------------------------------------------------------------


class Redirecting(BaseHTTPRequestHandler):
    """Answers every request with a redirect, and notes who asked."""

    protocol_version = "HTTP/1.1"
    to: ClassVar[str] = ""
    asked: ClassVar[list[dict[str, str]]] = []

    def do_GET(self) -> None:
        self.asked.append({name.lower(): value for name, value in self.headers.items()})
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(307)
        self.send_header("Location", self.to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 (http.server's)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def redirecting() -> Iterator[Callable[[str], str]]:
    """A server on loopback that redirects to this address; its host and port."""
    with ThreadingHTTPServer((ALLOWED, 0), Redirecting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def to(address: str) -> str:
            Redirecting.to = address
            Redirecting.asked.clear()
            return f"{ALLOWED}:{server.server_port}"

        yield to
        server.shutdown()


def mcp_server(url: str, transport: str) -> McpServer:
    """A server as an older installation may have stored it; off, so that no worker tries."""
    return McpServer.objects.create(
        label=uuid4().hex, url=url, transport=transport, all_tools=True, is_active=False
    )


@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
@pytest.mark.parametrize("host", SPELLINGS)
def test_an_mcp_server_at_such_an_address_is_not_asked(
    connected: list[str], host: str, transport: str
) -> None:
    row = mcp_server(f"http://{host}/mcp", transport)
    browser = sign_in(is_superuser=True)[0]
    page = browser.post(f"/admin/agents/mcpserver/{row.pk}/test/")
    assert page.context["problem"] == REFUSED
    check_untouched(connected)


@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
def test_an_mcp_server_leads_nobody_there(
    connected: list[str], redirecting: Callable[[str], str], transport: str
) -> None:
    row = mcp_server(f"http://{redirecting(f'http://{METADATA}/latest')}/mcp", transport)
    found = asyncio.run(look_at_mcp(server_from_row(row), FailureTrail()))
    assert isinstance(found, str)
    assert Redirecting.asked
    check_untouched(connected)


def test_an_mcp_server_is_reached_by_a_name_of_several_addresses(
    tmp_path: Any, named: Callable[..., None]
) -> None:
    named("localhost", [METADATA, "::1", ALLOWED])  # the SDK's servers take no other name
    host = McpHost("streamable_http", tmp_path / "notes")
    host.start()
    try:
        row = mcp_server(host.url.replace(ALLOWED, "localhost"), "streamable_http")
        found = asyncio.run(look_at_mcp(server_from_row(row), FailureTrail()))
        assert isinstance(found, list), found
        assert found
    finally:
        host.kill()


# --- plugin runtimes ------------------------------------------------------------------------------


@pytest.mark.parametrize("host", SPELLINGS)
def test_a_plugin_runtime_at_such_an_address_is_not_asked(connected: list[str], host: str) -> None:
    row = PluginRuntime(id=1, name="r", url=f"ws://{host}:5400/control/ws")
    assert asyncio.run(check_connection(row)) == REFUSED
    check_untouched(connected)


def test_a_plugin_runtime_that_redirects_gets_nobody_s_token_elsewhere(
    redirecting: Callable[[str], str],
) -> None:
    with socket.create_server((ALLOWED, 0)) as elsewhere:
        elsewhere.settimeout(0)
        at = redirecting(f"ws://{ALLOWED}:{elsewhere.getsockname()[1]}/control/ws")
        row = PluginRuntime.objects.create(name=uuid4().hex[:8], url=f"ws://{at}/x", is_active=False)
        row.token = secrets.store(secrets.Purpose.PLUGIN_RUNTIME.of(row.pk), "sk-runtime-0123456789")
        row.save()
        found = asyncio.run(check_connection(row))
        assert found == "The address answers 307: it is no plugin runtime."
        assert "sk-runtime-0123456789" in Redirecting.asked[0].values()
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def test_a_plugin_runtime_that_never_answers_is_left_in_time(settings: Settings) -> None:
    settings.PLUGIN_CONNECT_S = 0.2
    with socket.create_server((ALLOWED, 0)) as silent:
        row = PluginRuntime(id=1, name="r", url=f"ws://{ALLOWED}:{silent.getsockname()[1]}/")
        assert asyncio.run(check_connection(row)) == "No answer within 0.2 seconds."


# --- forms ----------------------------------------------------------------------------------------


@pytest.fixture
def staff() -> Browser:
    return sign_in(is_superuser=True)[0]


@pytest.mark.parametrize("host", SPELLINGS[:-1])
def test_no_form_takes_such_an_address(staff: Browser, host: str) -> None:
    forms = {
        "/admin/prompts/endpoint/add/": address(base_url=f"http://{host}/v1"),
        "/admin/agents/mcpserver/add/": {
            "label": "x", "transport": "streamable_http", "url": f"http://{host}/", "timeout_s": "60"
        },
        "/admin/agents/pluginruntime/add/": {
            "name": "x", "transport": "websocket", "profile": "auto", "url": f"ws://{host}/"
        },
    }  # fmt: skip
    for path, given in forms.items():
        page = staff.post(path, given)
        assert page.status_code == 200
        errors = page.context["adminform"].form.errors
        assert list(errors.values()) == [[REFUSED]], path

"""Requests go by the outgoing proxy, trust the private CA, and still reach no refused address."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from agents.admin import endpoint_check
from agents.intake import file_fetch
from agents.providers import http
from agents.providers.base import ChatMessage, Finished, ModelRequest, ProviderError
from agents.providers.registry import WIRES
from agents.runtimes.plugins import transports
from agents.runtimes.plugins.runtime import Runtime
from agents.tools.mcp.http_transport import make_client as make_mcp_client
from config.auth.jwks_cache import fetch_keys
from config.errors import InvalidRequest
from config.outgoing import outgoing_settings, proxy
from config.outgoing.outgoing_settings import Exceptions
from prompts import outgoing_connections
from prompts.endpoints.routing import Candidate
from prompts.models import Endpoint
from tests.support.fakes.fake_model import FakeModel, text
from tests.support.fakes.issuer import EC, Issuer
from tests.support.fakes.outgoing import PrivateCa, ProxyDouble, TlsFront

HOST = "model.example"  # only the proxy knows it
PUBLIC = "93.184.215.14"
TOKEN = "a-password-of-the-proxy"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> PrivateCa:
    return PrivateCa(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def outside(
    ca: PrivateCa, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ProxyDouble]]:
    """Start a proxy that leads to plain servers of this machine, by TLS of the private CA."""
    with ExitStack() as stack:

        def start(**places: int) -> ProxyDouble:
            running = stack.enter_context(ProxyDouble(user="parley", password=TOKEN))
            for name, port in places.items():
                host = name.replace("_", ".")
                running.places[host] = stack.enter_context(TlsFront(ca, host, port)).port
            monkeypatch.setenv("OUTGOING_PROXY", running.url)
            settings.OUTGOING_PROXY = outgoing_settings.read_proxy()
            settings.OUTGOING_CA_FILE = str(ca.path)
            return running

        yield start


@pytest.fixture
def resolves(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Let this machine know a name."""
    real, known = socket.getaddrinfo, {}  # type: ignore[var-annotated]

    def found(asked: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if asked in known:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[asked], int(port or 0)))]
        return real(asked, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    return known.__setitem__


def candidate(base_url: str, model: str = "m") -> Candidate:
    return Candidate(1, "openai", "openai.chat_completions", base_url, model, "sk-key", None, None)


async def said(target: Candidate) -> str:
    try:
        request = ModelRequest(messages=(ChatMessage("user", "hi"),))
        answer = WIRES[target.dialect](target, request)
        events = [event async for group in answer for event in group]
    finally:
        await http.close()
    assert isinstance(events[-1], Finished)
    return "".join(str(getattr(event, "text", "")) for event in events)


def port_of(url: str) -> int:
    return int(urlsplit(url).port or 0)


def test_a_model_is_asked_through_the_proxy_by_a_name_that_only_the_proxy_knows(
    provider: FakeModel, outside: Callable[..., ProxyDouble]
) -> None:
    name = uuid4().hex
    provider.script(text("Hello."), name=name)
    running = outside(model_example=port_of(provider.base_url))
    assert asyncio.run(said(candidate(f"https://{HOST}/v1", f"script:{name}"))) == "Hello."
    assert running.asked == [f"CONNECT {HOST}:443"]
    (received,) = provider.requests_for(f"script:{name}")
    assert TOKEN not in str(received.headers)
    assert not any("proxy" in header for header in received.headers)


def test_without_the_private_ca_the_certificate_is_not_trusted(
    provider: FakeModel, outside: Callable[..., ProxyDouble], settings: Settings
) -> None:
    running = outside(model_example=port_of(provider.base_url))
    settings.OUTGOING_CA_FILE = ""
    with pytest.raises(ProviderError) as refused:
        asyncio.run(said(candidate(f"https://{HOST}/v1")))
    assert refused.value.code == "provider_unreachable"
    assert running.asked


def test_plain_http_is_forwarded_and_this_machine_is_asked_directly(
    provider: FakeModel, outside: Callable[..., ProxyDouble]
) -> None:
    name = uuid4().hex
    provider.script(text("Hello."), text("Hello."), name=name)
    running = outside()
    running.places["plain.example"] = port_of(provider.base_url)
    plain = candidate("http://plain.example/v1", f"script:{name}")
    assert asyncio.run(said(plain)) == "Hello."
    assert running.asked == ["POST http://plain.example/v1/chat/completions"]
    assert asyncio.run(said(candidate(provider.base_url, f"script:{name}"))) == "Hello."
    assert len(running.asked) == 1


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "2852039166", "[::ffff:169.254.169.254]", "0.0.0.0", "metadata.example"]
)
def test_a_refused_address_is_not_even_asked_for(
    host: str, outside: Callable[..., ProxyDouble], resolves: Callable[[str, str], None]
) -> None:
    resolves("metadata.example", "169.254.169.254")
    running = outside(metadata_example=1)
    with pytest.raises(ProviderError) as refused:
        asyncio.run(said(candidate(f"https://{host}/v1")))
    assert refused.value.code == "provider_address_refused"

    async def ask_as_mcp() -> None:
        async with make_mcp_client(f"https://{host}/mcp", {}, lambda status: None) as web:
            await web.get(f"https://{host}/mcp")

    with pytest.raises((httpx2.ConnectError, httpx2.InvalidURL)) as unmet:
        asyncio.run(ask_as_mcp())
    assert outgoing_connections.was_refused(unmet.value) or isinstance(unmet.value, httpx2.InvalidURL)
    assert running.asked == []


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    """A plain server that answers with the host by which it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"asked as {self.headers['Host']}".encode()
            self.send_response(302 if self.path == "/moved" else 200)
            self.send_header("Location", "https://inside.example/secret.txt")
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running
        running.shutdown()


def test_an_mcp_server_is_asked_through_the_proxy_too(
    site: ThreadingHTTPServer, outside: Callable[..., ProxyDouble]
) -> None:
    running = outside(tools_example=site.server_address[1])

    async def ask() -> str:
        url = "https://tools.example/mcp"
        async with make_mcp_client(url, {}, lambda status: None) as web:
            return (await web.get(url)).text

    assert asyncio.run(ask()) == "asked as tools.example"
    assert running.asked == ["CONNECT tools.example:443"]


async def fetched(url: str) -> tuple[str, str]:
    until = asyncio.get_running_loop().time() + 10
    async with file_fetch.open_remote(url, until=until) as (described, pieces):
        return described.name, (await _whole(pieces)).decode()


async def _whole(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([some async for some in pieces])


def test_a_clients_file_is_asked_for_by_the_address_that_was_checked(
    site: ThreadingHTTPServer,
    ca: PrivateCa,
    outside: Callable[..., ProxyDouble],
    resolves: Callable[[str, str], None],
) -> None:
    """The proxy may resolve the name to another address than the one that the gate has admitted."""
    resolves("files.example", PUBLIC)
    resolves("inside.example", "10.0.0.7")
    running = outside(files_example=site.server_address[1])
    running.places[PUBLIC] = running.places.pop("files.example")
    assert asyncio.run(fetched("https://files.example/a/memo.txt")) == (
        "memo.txt",
        "asked as files.example",
    )
    assert running.asked == [f"CONNECT {PUBLIC}:443"]
    for inside in ("https://inside.example/a.txt", "https://files.example/moved", "https://10.0.0.7/a"):
        with pytest.raises(InvalidRequest) as refused:
            asyncio.run(fetched(inside))
        assert refused.value.error_code == "url_refused"
    with pytest.raises(InvalidRequest) as unknown:
        asyncio.run(fetched("https://nobody-knows.example/a"))
    assert unknown.value.error_code == "file_unreachable"
    assert set(running.asked) == {f"CONNECT {PUBLIC}:443"}


def test_keys_of_an_identity_provider_come_through_the_proxy(
    outside: Callable[..., ProxyDouble],
) -> None:
    with Issuer(EC) as issuer:
        running = outside(issuer_example=port_of(issuer.url))
        found = asyncio.run(fetch_keys("https://issuer.example/jwks.json"))
    assert found.find("ES256", EC.kid) is not None
    assert running.asked == ["CONNECT issuer.example:443"]


def test_the_check_of_an_endpoint_names_the_proxy_when_that_is_at_fault(
    outside: Callable[..., ProxyDouble], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint(name="x", dialect="openai.chat_completions", base_url=f"https://{HOST}/v1")
    running = outside()
    _, sentence, _ = asyncio.run(endpoint_check._look(endpoint, "", ""))
    assert sentence == f"The proxy of OUTGOING_PROXY answers 502 when it is asked for {HOST}."
    monkeypatch.setenv("OUTGOING_PROXY", running.url.replace(TOKEN, "wrong"))
    settings.OUTGOING_PROXY = outgoing_settings.read_proxy()
    _, sentence, _ = asyncio.run(endpoint_check._look(endpoint, "", ""))
    assert sentence == f"The proxy of OUTGOING_PROXY answers 407 when it is asked for {HOST}."
    monkeypatch.setenv("OUTGOING_PROXY", "http://127.0.0.1:1")
    settings.OUTGOING_PROXY = outgoing_settings.read_proxy()
    _, sentence, _ = asyncio.run(endpoint_check._look(endpoint, "", ""))
    assert sentence == "Nothing answers at the address of OUTGOING_PROXY."


@pytest.mark.parametrize("trusted", [True, False])
def test_a_plugin_runtime_is_reached_directly_and_may_have_a_certificate_of_the_private_ca(
    trusted: bool, ca: PrivateCa, outside: Callable[..., ProxyDouble], settings: Settings
) -> None:
    from websockets.asyncio.server import serve

    running = outside()
    settings.OUTGOING_CA_FILE = str(ca.path) if trusted else ""

    async def greeted() -> str:
        async def greet(opened: Any) -> None:
            await opened.send("hello")

        context = ca.server_context("localhost")
        async with serve(greet, "127.0.0.1", 0, ssl=context) as listening:
            port = next(iter(listening.sockets)).getsockname()[1]
            runtime = Runtime(
                id=1,
                name="r",
                identity=uuid4(),
                transport="websocket",
                url=f"wss://localhost:{port}/",
                command="",
                args=(),
                directory="",
                profile="",
            )
            opened = await transports._connect(runtime)
            try:
                return str(await opened.recv())
            finally:
                await opened.close()

    if trusted:
        assert asyncio.run(greeted()) == "hello"
    else:
        with pytest.raises(ssl.SSLCertVerificationError):
            asyncio.run(greeted())
    assert running.asked == []


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "direct", "proxied"),
    [
        ("", ["localhost", "127.0.0.1", "[::1]", "a.localhost"], ["10.0.0.1", "models.example"]),
        ("models.example", ["models.example", "MODELS.example."], ["a.models.example"]),
        (".corp.example", ["corp.example", "a.b.corp.example"], ["notcorp.example"]),
        ("*.corp.example", ["a.corp.example"], ["corp.example.com"]),
        ("10.0.0.0/8, fd00::/8", ["10.1.2.3", "[fd00::1]"], ["11.0.0.1", "[2001:db8::1]"]),
    ],
)
def test_what_is_listed_is_reached_directly(
    listed: str,
    direct: list[str],
    proxied: list[str],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OUTGOING_NO_PROXY", listed)
    settings.OUTGOING_PROXY = outgoing_settings.ProxyServer("http://proxy.example:3128")
    settings.OUTGOING_NO_PROXY = outgoing_settings.read_exceptions()
    for host in direct:
        assert proxy.proxy_for(f"https://{host}/v1") is None, host
    for host in proxied:
        assert proxy.proxy_for(f"https://{host}/v1") is not None, host


@pytest.mark.parametrize(
    "wrong",
    [
        "socks5://proxy.example:1080",
        "proxy.example:3128",
        f"http://user:{TOKEN}@proxy.example",
        f"http://user:{TOKEN}@proxy.example:x",
        "http://proxy.example:3128/path",
        "http://:3128",
    ],
)
def test_a_wrong_proxy_is_refused_by_name_and_without_its_password(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTGOING_PROXY", wrong)
    with pytest.raises(ImproperlyConfigured, match=r"^OUTGOING_PROXY .*nset\.") as refused:
        outgoing_settings.read_proxy()
    assert TOKEN not in str(refused.value)


def test_a_password_may_have_any_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTGOING_PROXY", "http://a%40b:p%3Aw%2F@[::1]:3128")
    server = outgoing_settings.read_proxy()
    assert server == outgoing_settings.ProxyServer("http://[::1]:3128", "a@b", "p:w/")
    assert "p:w/" not in repr(server)


def test_a_wrong_exception_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("http://a.example", "a b", "*", "."):
        monkeypatch.setenv("OUTGOING_NO_PROXY", wrong)
        with pytest.raises(ImproperlyConfigured, match=r"^OUTGOING_NO_PROXY must list"):
            outgoing_settings.read_exceptions()
    monkeypatch.delenv("OUTGOING_NO_PROXY")
    assert outgoing_settings.read_exceptions() == Exceptions()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        ("", "has no certificate in it"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "has no certificate in it"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "has a certificate that cannot be read",
        ),
    ],
)
def test_a_wrong_ca_file_is_refused_by_name(
    content: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("OUTGOING_CA_FILE", str(path))
    with pytest.raises(ImproperlyConfigured, match=f"^OUTGOING_CA_FILE {reason}"):
        outgoing_settings.read_ca_file()


def test_a_good_ca_file_is_added_to_those_of_the_system(
    ca: PrivateCa, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTGOING_CA_FILE", str(ca.path))
    settings.OUTGOING_CA_FILE = outgoing_settings.read_ca_file()
    context = proxy.tls_context()
    assert context is not None
    assert "Example Corp CA" in str(context.get_ca_certs())
    settings.OUTGOING_CA_FILE = ""
    assert (proxy.tls_context(), proxy.tls_options()) == (None, {})

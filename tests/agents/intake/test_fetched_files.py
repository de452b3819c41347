"""Images and texts that clients name by URL: fetched from real hosts, good ones and hostile ones."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp.connector
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conversations.models import Attachment, Message, Run
from prompts import outgoing_connections
from prompts.endpoints import routing
from prompts.models import ModelMapping
from tests.hostile.loopback import Asked, Loopback, Writer
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text
from tests.support.pictures import SVG, picture

pytestmark = pytest.mark.once

Scripted = Callable[..., ScriptedModel]
PICTURE = picture("PNG", (24, 18))
MEMO = "名字,数\n一,1\n"
SITE: dict[str, Callable[[Writer], Awaitable[None]]] = {}
ENDLESS = b"all work and no play\n" * 4096


def serves(path: str) -> Callable[[Callable[[Writer], Awaitable[None]]], None]:
    def keep(answer: Callable[[Writer], Awaitable[None]]) -> None:
        SITE[path] = answer

    return keep


def static(path: str, data: bytes, **headers: str) -> None:
    @serves(path)
    async def _(client: Writer) -> None:
        await client.head(**headers)
        await client.raw(data)


def redirect(path: str, to: str) -> None:
    @serves(path)
    async def _(client: Writer) -> None:
        await client.head("302 Found", location=to, content_length="0")


static("/a.png", PICTURE, content_type="image/png")
static("/memo.csv", MEMO.encode("gbk"), content_type="text/csv; charset=GBK")
static("/page.html", b"<p>caf\xe9</p>", content_type="text/html; charset=iso-8859-1")
static("/lying.png", SVG * 3, content_type="image/png")
static("/a.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", content_type="text/plain")
static("/a.zip", b"PK\x03\x04" + bytes(40), content_type="text/plain")
static("/a.mp4", b"\0\0\0\x20ftypisom" + bytes(40), content_type="text/plain")
static("/bytes", bytes(range(256)), content_type="text/plain")
static("/odd", "ä".encode("latin-1") * 20, content_type="text/plain")
static("/unknown", b"a" * 20, content_type="text/plain; charset=rot13")
static("/packed", gzip.compress(b"a" * 10**6), content_type="text/plain", content_encoding="gzip")
static("/announced", b"a" * 20, content_type="text/plain", content_length=str(50 * 2**20))
static("/empty", b"", content_type="text/plain")
redirect("/here", "/a.png")
redirect("/away", "http://169.254.169.254/latest/meta-data/")
redirect("/down", "file:///etc/passwd")
redirect("/round", "/round")
redirect("/nowhere", "")


@serves("/missing")
async def _missing(client: Writer) -> None:
    await client.head("404 Not Found")


@serves("/slow.png")
async def _slow(client: Writer) -> None:
    await client.head(content_type="image/png")
    await client.raw(PICTURE[:20])
    await client.gone()


@serves("/silent")
async def _silent(client: Writer) -> None:
    await client.gone()


@serves("/dripping")
async def _dripping(client: Writer) -> None:
    await client.head(content_type="text/plain")
    while True:
        await client.raw(b"a")
        await asyncio.sleep(0.02)


@serves("/endless.txt")
async def _endless_text(client: Writer) -> None:
    await client.head(content_type="text/plain")
    while True:
        await client.raw(ENDLESS)


@serves("/endless.png")
async def _endless_image(client: Writer) -> None:
    await client.head(content_type="image/png")
    await client.raw(PICTURE[:200])
    while True:
        await client.raw(ENDLESS)


@serves("/heads")
async def _heads(client: Writer) -> None:
    await client.raw(b"HTTP/1.1 200 OK\r\n")
    while True:
        await client.raw(b"".join(b"X-%d: %b\r\n" % (n, b"a" * 4000) for n in range(64)))


@serves("/begun")
async def _begun(client: Writer) -> None:
    while True:
        await client.raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 64)
        await asyncio.sleep(0)


@serves("/broken")
async def _broken(client: Writer) -> None:
    await client.head(content_type="text/plain", content_length="1000")
    await client.raw(b"a" * 100)


@serves("/reset")
async def _reset(client: Writer) -> None:
    client.reset()


async def _answer(asked: Asked, client: Writer) -> None:
    await SITE[asked.path.partition("?")[0]](client)


@pytest.fixture
def site(settings: Any) -> Iterator[str]:
    """A stranger's host, where staff have allowed this machine's own network."""
    settings.FETCH_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.FETCH_S = 1.0
    with Loopback(_answer) as host:
        yield f"http://127.0.0.1:{host.port}"


# --- each wire asks for an image or a text in its own words ------------------------------------------


def responses(model: str, parts: list[dict[str, Any]], **more: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/responses", {"model": model, "input": [{"role": "user", "content": parts}], **more}


def agent_api(model: str, parts: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    asked = {"model": model, "stream": False, "input": [{"role": "user", "content": parts}]}
    return "/process", asked


def completions(model: str, parts: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return "/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": parts}]}


def ag_ui(model: str, parts: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    said = {"id": "u1", "role": "user", "content": parts}
    ids = {"threadId": str(uuid4()), "runId": uuid4().hex}
    return "/api/v1/agent/ag-ui", ids | {"messages": [said], "forwardedProps": {"model": model}}


SAY = {"type": "text", "text": "What is it?"}
SAY_ITEM = {"type": "input_text", "text": "What is it?"}


def image_of(wire: str, url: str) -> dict[str, Any]:
    shapes: dict[str, dict[str, Any]] = {
        "responses": {"type": "input_image", "image_url": url},
        "completions": {"type": "image_url", "image_url": {"url": url}},
        "agent_api": {"type": "image", "image_url": url},
        "ag_ui": {"type": "image", "source": {"type": "url", "value": url}},
    }
    return shapes[wire]


def file_of(wire: str, *, url: str = "", data: str = "", name: str = "") -> dict[str, Any]:
    named = {"filename": name} if name else {}
    if wire == "ag_ui":
        source = {"type": "url" if url else "data", "value": url or data, "mimeType": "text/csv"}
        return {"type": "document", "source": source, "metadata": named}
    told = ({"file_url": url} if url else {"file_data": data}) | named
    if wire == "completions":
        return {"type": "file", "file": told}
    return {"type": "input_file" if wire == "responses" else "file"} | told


WIRES = {"responses": responses, "completions": completions, "agent_api": agent_api, "ag_ui": ag_ui}
BY_URL = ["responses", "agent_api", "ag_ui"]


def ask(client: Client, wire: str, model: str, *parts: dict[str, Any]) -> httpx.Response:
    say = SAY_ITEM if wire == "responses" else SAY
    path, body = WIRES[wire](model, [say, *parts])
    return client.http.post(path, json=body)


def check_done(response: httpx.Response) -> None:
    assert response.status_code == 200, response.text
    assert "RUN_ERROR" not in response.text
    assert '"failed"' not in response.text


def asked_by(client: Client) -> Message:
    found = Message.objects.filter(owner_id=client.user.pk, role="user").order_by("created_at").last()
    assert found is not None
    return found


def refusal(response: httpx.Response) -> tuple[int, str]:
    told = response.json()
    assert {"detail", "code", "request_id"} <= told.keys()
    return response.status_code, told["code"]


@contextmanager
def seeing(scripted: Scripted, provider: FakeModel, *answers: Any, sees: bool = True) -> Iterator[Any]:
    """A model, and what it was sent."""
    name = uuid4().hex
    provider.script(*(answers or (text("Fine."),)), name=name)
    made = scripted(f"script:{name}")
    ModelMapping.objects.filter(key=made.name.removeprefix("global:")).update(supports_vision=sees)
    routing.clear_cache()
    yield made.name, lambda: [one.body["messages"] for one in provider.requests_for(f"script:{name}")]


@pytest.mark.parametrize("wire", WIRES)
def test_an_image_is_fetched_and_reaches_a_model_that_sees(
    client: Client, site: str, scripted: Scripted, provider: FakeModel, wire: str
) -> None:
    with seeing(scripted, provider) as (model, sent):
        check_done(ask(client, wire, model, image_of(wire, f"{site}/here?size=1")))
        shown = sent()[0][-1]["content"]
    assert shown[0] == SAY
    head, _, data = shown[1]["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data)[:8] == PICTURE[:8]
    stored = asked_by(client)
    file = stored.metadata["user_message_attachments"]
    assert file.keys() == {"bucket", "path", "mime_type"}
    request = json.dumps(Run.objects.get(pk=str(stored.run_id)).request)
    assert file["path"] in request
    assert "127.0.0.1" not in request, "a run that is begun anew asks nobody for it again"


@pytest.mark.parametrize("wire", BY_URL)
def test_a_text_is_fetched_in_its_charset_and_told_under_its_name_now_and_later(
    client: Client, site: str, scripted: Scripted, provider: FakeModel, wire: str
) -> None:
    with seeing(scripted, provider) as (model, sent):
        check_done(ask(client, wire, model, file_of(wire, url=f"{site}/memo.csv")))
        (told,) = sent()[0][1:]
    assert told["content"] == f'What is it?\n<file name="memo.csv">\n{MEMO}\n</file>'
    stored = asked_by(client)
    file = stored.metadata["user_message_attachments"]
    size = len(MEMO.encode())
    assert (file["name"], file["mime_type"], file["size"]) == ("memo.csv", "text/csv", size)
    assert stored.content == "What is it?", "what was said is not what was sent with it"
    day = client.history(str(stored.thread_id))["messages"][0]
    assert (day["content"], day["url"]) == ("What is it?", None)
    (listed,) = day["files"]
    assert (listed["name"], listed["mimeType"]) == ("memo.csv", "text/csv")
    kept = client.http.get(listed["url"][listed["url"].index("/storage/") :])
    assert (kept.text, kept.headers["Content-Type"]) == (MEMO, "text/plain; charset=utf-8")
    blocks = client.history(str(stored.thread_id), content="blocks")["messages"][0]["content"]
    assert [block.get("filename") for block in blocks] == [None, "memo.csv"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("as_url", [True, False])
def test_a_text_is_taken_inline(
    client: Client, scripted: Scripted, provider: FakeModel, wire: str, as_url: bool
) -> None:
    data = base64.b64encode(MEMO.encode()).decode()
    data = f"data:text/csv;base64,{data}" if as_url else data
    with seeing(scripted, provider) as (model, sent):
        check_done(ask(client, wire, model, file_of(wire, data=data, name="../../a <b>.csv")))
        (told,) = sent()[0][1:]
    assert told["content"].endswith(f'\n<file name="a &lt;b&gt;.csv">\n{MEMO}\n</file>')


def test_a_later_turn_reads_the_file_again_though_its_host_is_gone(
    client: Client, settings: Any, scripted: Scripted, provider: FakeModel
) -> None:
    settings.FETCH_NETWORKS = [ip_network("127.0.0.0/8")]
    with seeing(scripted, provider, text("One."), text("Two.")) as (model, sent):
        with Loopback(_answer) as host:
            url = f"http://127.0.0.1:{host.port}/page.html"
            part = {"type": "input_file", "file_url": url}
            path, body = responses(model, [part, SAY_ITEM, image_of("responses", f"{url}/../a.png")])
            first = client.http.post(path, json=body).json()
        path, body = responses(model, [SAY_ITEM], previous_response_id=first["id"])
        check_done(client.http.post(path, json=body))
        before, _, question = sent()[1][1:]
    texts = [part.get("text", part["type"]) for part in before["content"]]
    assert texts == ['<file name="page.html">\n<p>café</p>\n</file>', "What is it?", "image_url"]
    assert question["content"] == "What is it?"
    items = client.http.get(f"/v1/responses/{first['id']}/input_items").json()["data"]
    assert [part["type"] for part in items[0]["content"]] == ["input_file", "input_text", "input_image"]
    assert items[0]["content"][0]["filename"] == "page.html"
    again = {"type": "input_file", "file_url": items[0]["content"][0]["file_url"]}
    with seeing(scripted, provider) as (model, sent):
        check_done(ask(client, "responses", model, again))
        assert "<p>café</p>" in sent()[0][-1]["content"], "a signed URL of ours is taken back"


@pytest.mark.parametrize("reloaded", [False, True])
def test_an_ag_ui_client_that_shows_its_whole_history_has_its_files_stored_once(
    client: Client, scripted: Scripted, provider: FakeModel, reloaded: bool
) -> None:
    """It sends the text again as it has it: inline or, once its page was reloaded, by our signed URL."""
    data = base64.b64encode(MEMO.encode()).decode()
    parts = [SAY, file_of("ag_ui", data=data, name="memo.csv")]
    with seeing(scripted, provider, text("One."), text("Two.")) as (model, sent):
        path, body = ag_ui(model, parts)
        whole: dict[str, Any] = {"state": {}, "tools": [], "context": []}
        check_done(client.http.post(path, json=body | whole))
        thread = f"/api/v1/agent/threads/{body['threadId']}"
        shown = client.http.get(thread).json()["messages"]
        assert [part["type"] for part in shown[0]["content"]] == ["text", "document"]
        assert shown[0]["content"][1]["metadata"] == {"filename": "memo.csv"}
        if not reloaded:
            shown[0] = body["messages"][0]
        asked = {"id": "u2", "role": "user", "content": "And now?"}
        again = body | whole | {"runId": uuid4().hex, "messages": [*shown, asked]}
        check_done(client.http.post(path, json=again))
        told = [message["content"] for message in sent()[1][1:]]
    assert told == [f'What is it?\n<file name="memo.csv">\n{MEMO}\n</file>', "One.", "And now?"]
    assert Attachment.objects.filter(owner_id=client.user.pk).count() == 1
    assert "branches" not in client.http.get(thread).json()


def test_a_file_is_named_by_its_id_and_by_its_owner_only(
    client: Client, make_client: Callable[..., Client], scripted: Scripted, provider: FakeModel
) -> None:
    stored = client.http.post("/api/v1/agent/attachments", files={"file": ("a.png", PICTURE)}).json()
    file_id = "file-" + stored["path"].rpartition("/")[2].partition(".")[0].replace("-", "")
    part = {"type": "input_image", "file_id": file_id}
    with seeing(scripted, provider) as (model, sent):
        check_done(ask(client, "responses", model, part))
        assert [one["type"] for one in sent()[0][-1]["content"]] == ["text", "image_url"]
    for caller, named in ((make_client(), file_id), (client, "file-1"), (client, uuid4().hex)):
        response = ask(caller, "responses", "demo", part | {"file_id": named})
        assert refusal(response) == (422, "file_not_found")
        assert response.json()["error"]["param"] == "input[0].content[1].file_id"


def test_a_function_s_image_is_shown_to_a_model_that_sees_and_told_of_to_any_other(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    data = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    output = [{"type": "input_text", "text": "Look."}, image_of("responses", data)]
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    answer = {"type": "function_call_output", "call_id": "c1", "output": output}
    said = [{"role": "user", "content": "What do you see?"}, call, answer]
    for sees in (True, False):
        with seeing(scripted, provider, sees=sees) as (model, sent):
            check_done(client.http.post("/v1/responses", json={"model": model, "input": said}))
            told = sent()[0][3:]
        if sees:
            assert told[0]["content"] == "Look."
            assert [part["type"] for part in told[1]["content"]] == ["text", "image_url"]
        else:
            left_out = [{"type": "image", "mime_type": "image/png"}]
            assert json.loads(told[0]["content"]) == {"text": "Look.", "left_out": left_out}
    assert base64.b64encode(PICTURE).decode()[:40] not in json.dumps(told)


# --- what is refused -----------------------------------------------------------------------------

BAD = {
    "/missing": (422, "file_unreachable"),
    "/slow.png": (422, "file_unreachable"),
    "/silent": (422, "file_unreachable"),
    "/dripping": (422, "file_unreachable"),
    "/broken": (422, "file_unreachable"),
    "/reset": (422, "file_unreachable"),
    "/packed": (422, "file_unreachable"),
    "/heads": (422, "file_unreachable"),
    "/begun": (422, "file_unreachable"),
    "/round": (422, "file_unreachable"),
    "/away": (422, "url_refused"),
    "/down": (422, "url_refused"),
    "/announced": (413, "payload_too_large"),
    "/endless.txt": (413, "document_too_large"),
    "/endless.png": (413, "payload_too_large"),
    "/a.pdf": (422, "unsupported_file"),
    "/a.zip": (422, "unsupported_file"),
    "/a.mp4": (422, "unsupported_file"),
    "/bytes": (422, "unsupported_file"),
    "/odd": (422, "unsupported_file"),
    "/unknown": (422, "unsupported_file"),
}


@pytest.mark.parametrize("path", BAD)
def test_a_host_that_does_not_give_a_file_is_refused_in_time(
    client: Client, site: str, settings: Any, path: str
) -> None:
    """Most of these hosts never end; who waited for one would run into the client's own time-out."""
    settings.FETCH_S = 5.0 if path.startswith("/endless") else 0.5
    response = ask(client, "responses", "demo", {"type": "input_file", "file_url": f"{site}{path}"})
    assert refusal(response) == BAD[path]
    assert response.json()["error"]["param"] == "input[0].content[1].file_url"
    assert "127.0.0.1" not in response.json()["detail"]


def test_what_is_no_image_is_refused_whatever_its_host_says(client: Client, site: str) -> None:
    for path, told in (("/lying.png", "image"), ("/memo.csv", "image"), ("/empty", "image")):
        response = ask(client, "completions", "demo", image_of("completions", f"{site}{path}"))
        assert refusal(response) == (415, "unsupported_media_type")
        assert response.json()["error"]["param"] == "messages[0].content[1].image_url.url"
        assert told in response.json()["detail"]


HIDDEN = [
    "http://127.0.0.1:{port}/a.png",
    "https://127.0.0.1:{port}/a.png",
    "https://localhost:{port}/a.png",
    "https://2130706433:{port}/a.png",
    "https://0x7f.1:{port}/a.png",
    "https://[::ffff:127.0.0.1]:{port}/a.png",
    "https://[64:ff9b::7f00:1]:{port}/a.png",
    "https://10.0.0.1/a.png",
    "https://192.168.1.1/a.png",
    "https://100.64.0.1/a.png",
    "https://169.254.169.254/latest/meta-data/",
    "https://[fe80::1]/a.png",
    "https://[fd00:ec2::254]/a.png",
    "https://0.0.0.0:{port}/a.png",
    "https://user:password@127.0.0.1:{port}/a.png",
    "http://example.com/a.png",
    "https:///a.png",
    "https://[/a.png",
    "https://a:b:c/a.png",
    "file:///etc/passwd",
    "ftp://127.0.0.1/a.png",
    "gopher://127.0.0.1/a",
    "/etc/passwd",
]


@pytest.mark.parametrize("url", HIDDEN)
def test_nothing_is_fetched_from_this_machine_and_the_networks_round_it(
    client: Client, settings: Any, url: str
) -> None:
    settings.FETCH_S = 2.0
    asked: list[str] = []

    async def answer(given: Asked, to: Writer) -> None:
        asked.append(given.path)
        await _answer(given, to)

    with Loopback(answer) as host:
        given = url.format(port=host.port)
        response = ask(client, "responses", "demo", image_of("responses", given))
        listed = ask(client, "responses", "demo", {"type": "input_file", "file_url": given})
    codes = {"url_refused", "file_unreachable"} if "example.com" in url else {"url_refused"}
    for told in (response, listed):
        status, code = refusal(told)
        assert status == 422
        assert code in codes
    assert not asked


def test_what_staff_list_is_asked_but_never_a_machine_s_own_metadata(
    client: Client, settings: Any, site: str
) -> None:
    settings.FETCH_NETWORKS = [ip_network("0.0.0.0/0"), ip_network("::/0")]
    for url in ("http://169.254.169.254/latest", f"{site}/away"):
        response = ask(client, "responses", "demo", image_of("responses", url))
        assert refusal(response) == (422, "url_refused")
    check_done(ask(client, "responses", "demo", image_of("responses", f"{site}/a.png")))


def test_a_name_that_leads_to_us_the_second_time_is_refused(
    client: Client, site: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: whoever looked before is told another address than whoever connects."""
    settings.FETCH_NETWORKS = []
    port = int(site.rpartition(":")[2])
    known, told = socket.getaddrinfo, []

    def rebinding(host: Any, *more: Any, **options: Any) -> Any:
        if host not in ("rebind.test", b"rebind.test"):
            return known(host, *more, **options)
        told.append(host)
        return known("127.0.0.1", *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    url = f"https://rebind.test:{port}/a.png"
    response = ask(client, "responses", "demo", image_of("responses", url))
    assert refusal(response) == (422, "url_refused")
    assert told


def test_a_name_server_that_never_answers_holds_up_nothing_else(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FETCH_S = 0.5
    known, ends = socket.getaddrinfo, threading.Event()

    def waits(host: Any, *more: Any, **options: Any) -> Any:
        if "slow.test" in str(host):
            ends.wait()
            raise socket.gaierror
        return known(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", waits)
    images = [image_of("responses", f"https://{n}.slow.test/a.png") for n in range(8)]
    try:
        for _ in range(2):  # more than the loop's own executor has threads
            response = ask(client, "responses", "demo", *images)
            assert refusal(response) == (422, "file_unreachable")
        begun = client.http.post("/v1/responses", json={"model": "demo", "input": "chest"})
        check_done(begun)
    finally:
        ends.set()


def test_a_gate_lets_out_to_one_side_only() -> None:
    listed = [ip_network("10.1.0.0/16")]
    open_, here = "93.184.216.34", "10.1.2.3"

    def opens(gate: outgoing_connections.Gate, host: str) -> bool:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
        try:
            gate.open_socket((family, socket.SOCK_STREAM, 0, "", (host, 443))).close()
        except outgoing_connections.AddressRefused:
            return False
        return True

    for first, second in ((open_, here), (here, open_)):
        gate = outgoing_connections.Gate(listed, plain=False)
        assert [opens(gate, first), opens(gate, second), opens(gate, first)] == [True, False, True]
    plain = outgoing_connections.Gate(listed, plain=True)
    assert [opens(plain, open_), opens(plain, here)] == [False, True]
    closed = outgoing_connections.Gate([], plain=False)
    inside = [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.0.2.1",
        "240.0.0.1",
        "::1",
        "fd00::1",
        "fe80::1",
    ]
    inside += ["2002:7f00:1::", "2001:0:7f00:1::", "::7f00:1", "ff02::1", "100.100.100.200"]
    assert not [host for host in inside if opens(closed, host)]
    assert opens(closed, "2606:2800:220:1:248:1893:25c8:1946")


def test_a_request_names_a_bounded_number_of_files(client: Client, site: str, settings: Any) -> None:
    image = image_of("responses", f"{site}/a.png")
    settings.FETCH_FILES = 1
    response = ask(client, "responses", "demo", image, image)
    assert refusal(response) == (422, "too_many_files")
    assert response.json()["error"]["param"] == "input[0].content[2].image_url"
    settings.FETCH_FILES = 0
    assert refusal(ask(client, "responses", "demo", image)) == (422, "url_refused")
    text_file = file_of("responses", data="YQ==")
    assert refusal(ask(client, "responses", "demo", *[text_file] * 9)) == (422, "too_many_files")


def test_one_user_s_slow_hosts_leave_room_for_others(
    client: Client, make_client: Callable[..., Client], site: str, settings: Any
) -> None:
    settings.FETCH_S = 2.0
    slow = image_of("responses", f"{site}/slow.png")
    with ThreadPoolExecutor(8) as pool:
        tries = [pool.submit(ask, client, "responses", "demo", slow) for _ in range(8)]
        other = ask(make_client(), "responses", "demo", image_of("responses", f"{site}/a.png"))
        codes = [refusal(done.result()) for done in tries]
    check_done(other)
    assert codes.count((422, "file_unreachable")) >= 4
    assert set(codes) <= {(422, "file_unreachable"), (429, "too_many_fetches")}
    assert (429, "too_many_fetches") in codes


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"%PDF-1.7 and more", "unsupported_file"),
        (b"RIFF\0\0\0\0WAVEfmt ", "unsupported_file"),
        (bytes(64), "unsupported_file"),
        (b"a\0b" * 9, "unsupported_file"),
        (b"\xff\xfe\0\xd8", "unsupported_file"),
        (b"a" * (512 * 1024 + 1), "document_too_large"),
    ],
)
@pytest.mark.parametrize("wire", WIRES)
def test_what_is_no_text_is_refused_by_what_it_is(
    client: Client, wire: str, data: bytes, code: str
) -> None:
    part = file_of(wire, data=base64.b64encode(data).decode(), name="a.txt")
    response = ask(client, wire, "demo", part)
    assert refusal(response)[1] == code
    assert "content[1]" in str(response.json())


@pytest.mark.parametrize(
    "data", ["ä, ß".encode("utf-16"), b"\xef\xbb\xbf" + "ä, ß".encode(), "ä, ß".encode(), b"x"]
)
def test_texts_are_known_by_their_marks(
    client: Client, scripted: Scripted, provider: FakeModel, data: bytes
) -> None:
    with seeing(scripted, provider) as (model, sent):
        part = file_of("responses", data=base64.b64encode(data).decode(), name="a.txt")
        check_done(ask(client, "responses", model, part))
        told = sent()[0][-1]["content"]
    assert told.endswith(f'<file name="a.txt">\n{"x" if data == b"x" else "ä, ß"}\n</file>')


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        ("responses", {"type": "input_audio", "input_audio": {"data": "YQ==", "format": "wav"}}),
        ("completions", {"type": "input_audio", "input_audio": {"data": "YQ==", "format": "wav"}}),
        ("agent_api", {"type": "audio", "data": "YQ==", "format": "wav"}),
        ("agent_api", {"type": "video", "video_url": "https://example.com/a.mp4"}),
        (
            "ag_ui",
            {"type": "audio", "source": {"type": "data", "value": "YQ==", "mimeType": "audio/wav"}},
        ),
        ("agent_api", {"type": "file", "file_data": "data:application/pdf;base64,JVBERi0="}),
    ],
)
def test_sound_films_and_pdfs_are_refused_by_their_place(
    client: Client, wire: str, part: dict[str, Any]
) -> None:
    response = ask(client, wire, "demo", part)
    assert refusal(response) == (422, "unsupported_file")
    assert "content[1]" in response.json()["detail"]
    assert "images (JPEG, PNG, WebP, GIF) and texts" in response.json()["detail"]


# --- https ---------------------------------------------------------------------------------------


def _certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "host.pem"
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(private + made.public_bytes(pem))
    return file


class _Files(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302 if self.path == "/plain" else 200)
        self.send_header("Location", "http://127.0.0.1:1/a.png")
        self.send_header("Content-Length", str(len(PICTURE)))
        self.end_headers()
        self.wfile.write(PICTURE)

    def log_message(self, *_: Any) -> None:
        pass


def test_https_is_verified_and_never_left(
    client: Client, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FETCH_NETWORKS = [ip_network("127.0.0.0/8")]
    file = _certificate(tmp_path)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(file)
    host = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    host.socket = ours.wrap_socket(host.socket, server_side=True)
    thread = threading.Thread(target=host.serve_forever, daemon=True)
    thread.start()
    url = f"https://127.0.0.1:{host.server_port}"
    try:
        stranger = ask(client, "responses", "demo", image_of("responses", f"{url}/a.png"))
        assert refusal(stranger) == (422, "file_unreachable")
        trusting = ssl.create_default_context(cafile=str(file))
        monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", trusting)
        check_done(ask(client, "responses", "demo", image_of("responses", f"{url}/a.png")))
        down = ask(client, "responses", "demo", image_of("responses", f"{url}/plain"))
        assert refusal(down) == (422, "url_refused")
    finally:
        host.shutdown()
        host.server_close()
        thread.join()

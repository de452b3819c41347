"""Testing an endpoint's connection: what is asked, what is said, and what never is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from agents.admin import endpoint_check
from agents.admin.endpoint_check import check_endpoint
from agents.providers.registry import WIRES
from benchmarks.ports import free_port
from prompts.models import Endpoint, ModelMapping
from prompts.wordings import staff_actions

pytestmark = pytest.mark.once

KEY = "sk-endpoint-abcdefghijkl-0123"


class Provider(BaseHTTPRequestHandler):
    """Answers what the path's first part asks for."""

    asked: ClassVar[list[tuple[str, dict[str, str]]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        wanted = self.path.split("/")[1]
        if wanted == "slow":
            threading.Event().wait(3)
        status = int(wanted) if wanted.isdigit() else 200
        body = {
            "models": json.dumps({"data": [{"id": "gpt-b"}, {"id": "gpt-a"}, {"id": 7}, "x"]}),
            "gemini": json.dumps({"models": [{"name": "models/gemini-pro"}]}),
            "echo": json.dumps({"data": [{"id": f"your key is {KEY}"}, {"id": "fine"}]}),
            "html": "<html>hello</html>",
            "deep": "[" * 100_000,
            "list": "[]",
            "none": json.dumps({"data": []}),
            "large": "x" * (3 * 1024 * 1024),
        }.get(wanted, json.dumps({"error": f"the key {KEY} is wrong"}))
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/models/models")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body.encode())

    def do_POST(self) -> None:
        """A chat completion of one word, as a server without a list of models gives it."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        said = {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def endpoint(base_url: str, *, key: str = KEY, **fields: Any) -> Endpoint:
    facts = {"name": uuid4().hex, "provider": "acme", "base_url": base_url, "needs_key": bool(key)}
    made = Endpoint.objects.create(**facts | fields)
    if key:
        staff_actions.rotate_secret(made, key)
    return made


def test_the_models_that_a_provider_lists_are_named(address: str) -> None:
    works, said, names = check_endpoint(endpoint(f"{address}/models"))
    assert (works, said, names) == (True, "Connected: 2 models.", ("gpt-a", "gpt-b"))
    path, headers = Provider.asked[-1]
    assert (path, headers["authorization"]) == ("/models/models", f"Bearer {KEY}")


@pytest.mark.parametrize(
    ("dialect", "base_url", "expected", "header"),
    [
        ("openai.chat_completions", "/models/v1", "/models/v1/models", "authorization"),
        ("openai.responses", "/models/v1/", "/models/v1/models", "authorization"),
        ("anthropic.messages", "/models/v1", "/models/v1/models", "x-api-key"),
        ("anthropic.messages", "/models", "/models/v1/models", "x-api-key"),
        ("gemini.generate_content", "/gemini", "/gemini/v1beta/models", "x-goog-api-key"),
    ],
)
def test_each_wire_is_asked_in_its_own_way(
    address: str, dialect: str, base_url: str, expected: str, header: str
) -> None:
    assert check_endpoint(endpoint(f"{address}{base_url}", dialect=dialect))[0]
    path, headers = Provider.asked[-1]
    assert path == expected
    assert KEY in headers[header]
    assert WIRES[dialect].models_url(f"{address}{base_url}") == f"{address}{expected}"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("401", "It answers 401: it refuses the key."),
        ("403", "It answers 403: it refuses the key."),
        ("404", "It answers 404: check the base URL (often it ends with /v1)."),
        ("302", "It answers 302, a redirect, which is not followed: enter where it leads."),
        ("429", "It answers 429: the key works, but its rate or credit is used up."),
        ("500", "It answers 500."),
        ("html", "It answers, but with no list of models: check the base URL and the dialect."),
        ("deep", "It answers, but with no list of models: check the base URL and the dialect."),
        ("list", "It answers, but with no list of models: check the base URL and the dialect."),
        ("large", "It answers, but with no list of models: check the base URL and the dialect."),
    ],
)
def test_what_is_wrong_is_explained(address: str, path: str, said: str) -> None:
    asked = len(Provider.asked)
    assert check_endpoint(endpoint(f"{address}/{path}")) == (False, said, ())
    assert len(Provider.asked) == asked + 1


def test_an_empty_list_of_models_is_a_list(address: str) -> None:
    assert check_endpoint(endpoint(f"{address}/none")) == (True, "Connected: 0 models.", ())


def test_a_name_that_holds_the_key_is_left_out(address: str) -> None:
    assert check_endpoint(endpoint(f"{address}/echo"))[2] == ("fine",)


def test_nobody_there_and_nobody_who_answers(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    works, said, _ = check_endpoint(endpoint(f"http://127.0.0.1:{port}/v1"))
    assert (works, said) == (False, f"Nothing answers at 127.0.0.1:{port}.")
    monkeypatch.setattr(endpoint_check, "TIMEOUT_S", 0.3)
    works, said, _ = check_endpoint(endpoint(f"{address}/slow"))
    assert said.endswith("within 0.3 seconds.")
    works, said, _ = check_endpoint(endpoint(f"{address.replace('http:', 'https:')}/models"))
    assert not works
    assert "TLS" in said or "certificate" in said or "Nothing answers" in said


@pytest.mark.parametrize(
    "base_url",
    [
        "http://169.254.169.254/latest",
        "http://[fe80::1]/v1",
        "http://[::ffff:169.254.169.254]/v1",
        "http://0.0.0.0/v1",
        "http://224.0.0.1/v1",
    ],
)
def test_a_link_local_address_is_not_asked(base_url: str) -> None:
    works, said, names = check_endpoint(endpoint(base_url))
    assert (works, names) == (False, ())
    assert "link-local" in said


def test_a_server_without_a_list_is_asked_for_a_word(address: str) -> None:
    made = endpoint(f"{address}/404")
    assert check_endpoint(made)[1].startswith("It answers 404")  # no model is known to ask
    mapping = ModelMapping.objects.create(key=f"m{uuid4().hex[:8]}", is_active=False)
    mapping.candidates.create(endpoint=made, model="gpt-word")
    assert check_endpoint(made) == (True, "It lists no models, but gpt-word answers.", ())
    path, headers = Provider.asked[-1]
    assert (path, headers["authorization"]) == ("/404/chat/completions", f"Bearer {KEY}")


def test_without_a_key_or_for_the_demo_nothing_is_asked(address: str) -> None:
    asked = len(Provider.asked)
    keyless = Endpoint.objects.create(name=uuid4().hex, provider="a", base_url=f"{address}/models")
    assert check_endpoint(keyless)[1].startswith("The endpoint has no key yet")
    demo = Endpoint.objects.create(name=uuid4().hex, provider="demo", dialect="demo")
    assert check_endpoint(demo)[0]
    staff_actions.rotate_secret(keyless, KEY)
    assert keyless.secret is not None
    keyless.secret.sealed = "gAAAA-not-ours"
    keyless.secret.save()
    assert check_endpoint(keyless)[1] == "The stored key cannot be opened: enter it again."
    assert len(Provider.asked) == asked


# --- the page -----------------------------------------------------------------------------------


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser(uuid4().hex, password="x" * 20))
    return client


def test_the_page_asks_first_and_never_shows_the_key(browser: Client, address: str) -> None:
    made = endpoint(f"{address}/models")
    url = f"/admin/prompts/endpoint/{made.pk}/test/"
    asked = len(Provider.asked)
    question = browser.get(url).content.decode()
    assert len(Provider.asked) == asked
    answer = browser.post(url).content.decode()
    assert "Connected: 2 models." in answer
    assert "gpt-a" in answer
    refused = browser.post(f"/admin/prompts/endpoint/{endpoint(f'{address}/401').pk}/test/")
    assert "it refuses the key" in refused.content.decode()
    for page in (question, answer, refused.content.decode()):
        assert KEY not in page


def test_a_stored_key_is_not_sent_to_another_address(browser: Client, address: str) -> None:
    made = endpoint(f"{address}/models")
    url = f"/admin/prompts/endpoint/{made.pk}/change/"
    facts = {"name": made.name, "provider": "acme", "dialect": made.dialect, "needs_key": "on"}
    facts |= {"is_active": "on", "key": ""}
    stolen = browser.post(url, facts | {"base_url": "http://evil.example/v1"})
    assert "base_url" in stolen.context["adminform"].form.errors
    moved = browser.post(url, facts | {"base_url": f"{address}/other"})
    assert moved.status_code == 302
    again = browser.post(url, facts | {"base_url": "http://other.example/v1", "key": KEY})
    assert again.status_code == 302

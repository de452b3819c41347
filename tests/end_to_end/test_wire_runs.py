"""A whole run over each provider wire: started, streamed, stored, asked again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from prompts.models import ProviderDialect
from tests.conftest import Server
from tests.support.client import Client, ScriptedModel, reply
from tests.support.fakes.fake_model import FakeModel
from tests.support.fakes.wires import WIRES

pytestmark = pytest.mark.once

HELLO = "Hello, world. 你好，世界。"


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def fake(wire: str) -> Iterator[FakeModel]:
    with WIRES[wire].fake() as fake:
        yield fake


def ask(client: Client, server: Server, wire: str, fake: FakeModel, model: str, **more: Any) -> Any:
    """A run over this wire, watched to its end: what was accepted, and its frames."""
    mapped = ScriptedModel.make(fake.base_url, (model,), dialect=wire)
    accepted = client.start("How do I squat?", mapped.name, enable_exercise_search=False, **more)
    return accepted, client.watch(accepted["run_id"])


def test_every_dialect_of_an_endpoint_has_a_client() -> None:
    from agents.providers.registry import WIRES

    assert {*WIRES, "demo"} == set(ProviderDialect.values)


def test_a_run_streams_and_stores_what_the_model_says(
    client: Client, server: Server, wire: str, fake: FakeModel
) -> None:
    accepted, frames = ask(client, server, wire, fake, "reasoning")
    assert (frames[-1].event, reply(frames)) == ("completed", HELLO)
    detail = client.run(accepted["run_id"])
    assert (detail["status"], detail["finish_reason"]) == ("completed", "stop")
    assert (detail["usage"]["input_tokens"], detail["usage"]["output_tokens"]) == (11, 8)
    said = client.history(accepted["conversation_id"])["messages"]
    assert [message["content"] for message in said] == ["How do I squat?", HELLO]
    assert fake.refusals == []


def test_the_next_run_tells_the_model_what_was_said(
    client: Client, server: Server, wire: str, fake: FakeModel
) -> None:
    accepted, _ = ask(client, server, wire, fake, "hello")
    _, frames = ask(client, server, wire, fake, "hello", conversation_id=accepted["conversation_id"])
    assert (frames[-1].event, reply(frames)) == ("completed", HELLO)
    sent = fake.requests[-1].raw.decode()
    assert sent.count("How do I squat?") == 2
    assert HELLO in sent
    assert fake.refusals == []


def test_auto_mends_words_however_the_wire_announces_them(
    client: Client, server: Server, wire: str, fake: FakeModel
) -> None:
    _, frames = ask(client, server, wire, fake, "hello", result_mode="auto")
    assert [frame for frame in frames if frame.event == "upstream_raw"] == []
    assert frames[-1].data["result_mode_effective"] == "xml_plaintext"


def test_auto_shows_what_came_over_the_wire_where_there_are_no_words(
    client: Client, server: Server, wire: str, fake: FakeModel
) -> None:
    _, frames = ask(client, server, wire, fake, "tools", result_mode="auto")
    raw = [frame.data for frame in frames if frame.event == "upstream_raw"]
    assert raw
    assert {data["dialect"] for data in raw} == {wire}
    assert frames[-1].data["result_mode_effective"] == "raw_passthrough"


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("overloaded-in-stream", "provider_unavailable", "Hello"),
        ("truncated", "provider_stream_interrupted", "Hello"),
        ("status-401", "provider_auth_error", ""),
        ("status-429", "provider_rate_limited", ""),
        ("rubbish", "provider_invalid_response", ""),
    ],
)
def test_a_provider_that_fails_ends_the_run_with_this_code(
    client: Client, server: Server, wire: str, fake: FakeModel, model: str, code: str, said: str
) -> None:
    accepted, frames = ask(client, server, wire, fake, model)
    assert (frames[-1].event, frames[-1].data["code"], reply(frames)) == ("error", code, said)
    assert client.run(accepted["run_id"])["error"]["code"] == code
    assert "sk-" not in str(frames)


def test_a_refusal_that_passes_is_tried_again(
    client: Client, server: Server, wire: str, fake: FakeModel
) -> None:
    _, frames = ask(client, server, wire, fake, f"fail-2:{uuid4().hex}")
    assert (frames[-1].event, reply(frames)) == ("completed", HELLO)
    assert len(fake.requests) == 3

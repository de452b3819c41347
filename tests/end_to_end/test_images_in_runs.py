"""An image from its upload to the model and back: RunAgentInput with attachments (seeds 000, 001)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from conversations.models import Message
from prompts.endpoints import routing
from prompts.models import ModelMapping
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text
from tests.support.image_runs import CHINESE_QUESTION, content, finished, post, uploaded
from tests.support.pictures import picture

pytestmark = pytest.mark.once


def answer(accepted: dict[str, Any]) -> str:
    said = Message.objects.filter(run_id=accepted["taskId"], role="assistant").order_by("seq").last()
    return said.content if said else ""


def vision(scripted: Callable[..., ScriptedModel], name: str, *, sees: bool) -> str:
    made = scripted(name)
    key = made.name.removeprefix("global:")
    ModelMapping.objects.filter(key=key).update(supports_vision=sees)
    routing.clear_cache()
    return made.name


def test_the_demo_tells_an_images_format_and_size(client: Client) -> None:
    data = picture("PNG", (64, 48))
    stored = uploaded(client, data)
    said = answer(finished(client, post(client, stored["url"])))
    assert "PNG" in said
    assert "64 × 48" in said


def test_the_stored_message_names_the_file_and_history_signs_it_anew(client: Client) -> None:
    first, second = (uploaded(client, picture("PNG", size)) for size in ((8, 8), (9, 9)))
    one = finished(client, post(client, first["url"]))
    kept = {key: first[key] for key in ("bucket", "path", "mime_type")}
    said = Message.objects.get(run_id=one["taskId"], role="user")
    assert said.metadata["user_message_attachments"] == kept
    assert first["url"].partition("?")[2] not in str(said.metadata)
    shown = client.history(one["threadId"])["messages"][0]
    assert shown["content"] == CHINESE_QUESTION
    assert shown["url"].partition("?")[0] == first["url"].partition("?")[0]
    assert content(client, shown["url"]) == content(client, first["url"])
    two = finished(client, post(client, first["url"], second["url"], runId="two"))
    said = Message.objects.get(run_id=two["taskId"], role="user")
    assert [file["path"] for file in said.metadata["user_message_attachments"]] == [
        first["path"],
        second["path"],
    ]
    blocks = client.history(two["threadId"], content="blocks")["messages"][0]["content"]
    assert [block["type"] for block in blocks] == ["text", "binary", "binary"]


def test_a_model_that_sees_is_sent_the_image_itself(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    name = f"script:{uuid4().hex}"
    provider.script(text("A picture."), name=name.removeprefix("script:"))
    stored = uploaded(client, picture("PNG", (16, 16)))
    model = vision(scripted, name, sees=True)
    accepted = finished(client, post(client, stored["url"], model=model))
    (asked,) = provider.requests_for(name)
    told, image = asked.body["messages"][-1]["content"]
    assert told == {"type": "text", "text": CHINESE_QUESTION}
    head, _, data = image["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    sent = hashlib.sha256(base64.b64decode(data)).hexdigest()
    assert sent == hashlib.sha256(content(client, stored["url"])).hexdigest()
    assert answer(accepted) == "A picture."


def test_a_model_without_vision_says_so_and_answers_the_text(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    name = f"script:{uuid4().hex}"
    provider.script(text("Hm."), name=name.removeprefix("script:"))
    stored = uploaded(client, picture("PNG", (16, 16)))
    model = vision(scripted, name, sees=False)
    accepted = finished(client, post(client, stored["url"], model=model))
    (asked,) = provider.requests_for(name)
    assert asked.body["messages"][-1]["content"] == CHINESE_QUESTION
    assert answer(accepted) == "（这个模型看不到图片，下面只根据文字回答。）\n\nHm."


@pytest.mark.parametrize("twist", ["stranger", "path", "traversal", "host", "garbage", "none"])
def test_a_url_that_is_not_the_callers_own_is_refused(
    client: Client, make_client: Callable[..., Client], twist: str
) -> None:
    url = uploaded(client, picture("PNG", (8, 8)))["url"]
    other = uploaded(client, picture("PNG", (8, 8)))["url"]
    caller = make_client() if twist == "stranger" else client
    wrong = {
        "stranger": url,
        "path": other.partition("?")[0] + "?" + url.partition("?")[2],
        "traversal": url.replace("/agent-inputs/", "/agent-inputs/..%2fagent-inputs/"),
        "host": url.replace("http://", "http://evil.example@"),
        "garbage": url + "x",
        "none": url.partition("?")[0],
    }[twist]
    response = post(caller, wrong)
    told = (response.status_code, response.json()["detail"])
    assert told == (422, "binary content url must be a valid signed URL")


def test_a_repeated_post_whose_url_was_signed_anew_is_the_same_run(client: Client) -> None:
    stored = uploaded(client, picture("PNG", (8, 8)))
    thread_id = str(uuid4())
    first = post(client, stored["url"], threadId=thread_id)
    finished(client, first)
    anew = client.history(thread_id)["messages"][0]["url"]
    assert post(client, anew, threadId=thread_id).json() == first.json()


# --- blocks in their order ------------------------------------------------------------------------


def text_block(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def binary(stored: dict[str, Any]) -> dict[str, Any]:
    return {"type": "binary", "mimeType": stored["mime_type"], "url": stored["url"]}


def told(client: Client, thread_id: str) -> list[tuple[str, str]]:
    """The blocks of the thread's first message: a text, or which file."""
    blocks = client.history(thread_id, content="blocks")["messages"][0]["content"]
    return [told_block(block) for block in blocks]


def told_block(block: dict[str, Any]) -> tuple[str, str]:
    if block["type"] == "text":
        return "text", block["text"]
    return block["mimeType"], block["url"].partition("?")[0]


ORDERS = ["a1b", "1a2", "12a", "ab1", "ab", "1", "a12", "1a2b1"]


@pytest.mark.parametrize("order", ORDERS)
def test_the_blocks_come_back_as_they_were_sent(client: Client, order: str) -> None:
    files = {name: uploaded(client, picture("PNG", (8, 8))) for name in "12" if name in order}
    words = {"a": "第一段，\n两行", "b": "第二段 😀"}
    blocks = [binary(files[one]) if one in files else text_block(words[one]) for one in order]
    said = [{"id": "msg-001", "role": "user", "content": blocks}]
    accepted = finished(client, post(client, messages=said))
    thread_id = accepted["threadId"]
    assert told(client, thread_id) == [told_block(block) for block in blocks]
    plain = client.history(thread_id)["messages"][0]
    assert plain["content"] == "\n".join(words[one] for one in order if one in words)
    assert (plain["url"] is None) == (not files)
    shown = client.http.get(f"/api/v1/agent/threads/{thread_id}").json()["messages"][0]["content"]
    as_ag_ui = [part["type"] for part in shown] if isinstance(shown, list) else ["text"]
    assert as_ag_ui == ["text" if one in words else "image" for one in order]


def test_the_model_is_told_the_blocks_in_their_order_now_and_later(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    name = f"script:{uuid4().hex}"
    provider.script(text("One."), text("Two."), name=name.removeprefix("script:"))
    stored = uploaded(client, picture("PNG", (16, 16)))
    model = vision(scripted, name, sees=True)
    blocks = [text_block("before"), binary(stored), text_block("after")]
    said = [{"id": "msg-001", "role": "user", "content": blocks}]
    thread_id = finished(client, post(client, messages=said, model=model))["threadId"]
    later = [{"id": "msg-002", "role": "user", "content": "and?"}]
    finished(client, post(client, messages=later, model=model, threadId=thread_id, runId="later"))
    for asked in provider.requests_for(name):
        (shown,) = [one["content"] for one in asked.body["messages"] if isinstance(one["content"], list)]
        assert [block.get("text", block["type"]) for block in shown] == ["before", "image_url", "after"]


def test_seed_001s_example_is_taken_as_it_stands_with_a_url_of_ours(client: Client) -> None:
    stored = uploaded(client, picture("JPEG", (8, 8)), "image/jpeg")
    example = {
        "threadId": "thread-123",
        "runId": "run-456",
        "messages": [
            {
                "id": "msg-1",
                "role": "user",
                "content": [
                    {"type": "text", "text": "帮我看看这张图"},
                    {"type": "binary", "mimeType": "image/jpeg", "url": stored["url"]},
                ],
            }
        ],
    }
    accepted = finished(client, client.http.post("/api/v1/agent/run", json=example))
    said = Message.objects.get(run_id=accepted["taskId"], role="user")
    kept = {key: stored[key] for key in ("bucket", "path", "mime_type")}
    assert said.metadata["user_message_attachments"] == kept
    (shown, *_) = client.history("thread-123", content="blocks")["messages"]
    assert shown["id"] == "msg-1"
    assert [told_block(block) for block in shown["content"]] == [
        ("text", "帮我看看这张图"),
        ("image/jpeg", stored["url"].partition("?")[0]),
    ]


# --- a file that is gone --------------------------------------------------------------------------


def test_a_url_whose_file_is_gone_is_refused(client: Client) -> None:
    thread_id = str(uuid4())
    response = client.http.post(
        "/api/v1/agent/attachments",
        files={"file": ("a.png", picture("PNG", (8, 8)), "image/png")},
        data={"threadId": thread_id},
    )
    url = response.json()["url"]
    finished(client, post(client, url, threadId=thread_id))
    assert client.http.delete(f"/api/v1/agent/threads/{thread_id}").status_code == 204
    assert client.http.get(url[url.index("/storage/") :]).json()["error"] == "NoSuchKey"
    elsewhere = str(uuid4())
    refused = post(client, url, threadId=elsewhere)
    assert (refused.status_code, refused.json()["code"]) == (422, "no_such_key")
    assert "NoSuchKey" in refused.json()["detail"]
    assert not Message.objects.filter(thread_id=elsewhere).exists()

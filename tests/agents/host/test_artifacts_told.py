"""A file that a runner made is told of on every wire, with an address where its owner gets it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest

from agents.host_protocol import results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from tests.support.client import Client, reply
from tests.support.host.hosted_runs import bound
from tests.support.host.stage import Says, Scripted, manifest, serving

pytestmark = pytest.mark.once

PLAN = b"3 sets of 5"


async def beside_words(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
    yield results.artifact(context.run_id, PLAN, mime_type="text/plain", name="plan.txt")
    yield results.message(context.run_id, "Here is the plan.")


async def alone(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
    yield results.message(context.run_id, "Here is the plan.")
    yield results.artifact(context.run_id, PLAN, mime_type="text/plain", name="plan.txt")


SAYS = pytest.mark.parametrize("says", [beside_words, alone])


def held(client: Client, url: str) -> bytes:
    """The bytes behind an address that a wire told."""
    found = client.http.get(url)
    assert found.status_code == 200, found.text
    head, _, data = found.json()["url"].partition(",")
    assert head == "data:text/plain;base64"
    return b64decode(data)


@SAYS
def test_responses_cite_it_and_their_text_is_the_answer_alone(client: Client, says: Says) -> None:
    api = openai.OpenAI(base_url=f"{client.url}/v1", api_key=client.token, max_retries=0)
    with bound(client.user, says), api:
        whole: Any = api.responses.create(model="demo", input="go")
        streamed: list[Any] = list(api.responses.create(model="demo", input="go", stream=True))
        again = api.responses.create(
            model="demo",
            input=[*(item.to_dict() for item in whole.output), {"role": "user", "content": "more"}],
        )
    assert (whole.output_text, again.output_text) == ("Here is the plan.", "Here is the plan.")
    parts = [part for item in whole.output for part in item.content]
    (cited,) = [one for part in parts for one in part.annotations]
    assert (cited.type, cited.title) == ("url_citation", "plan.txt")
    assert held(client, cited.url) == PLAN
    added = [one for one in streamed if one.type == "response.output_text.annotation.added"]
    (final,) = [one.response for one in streamed if one.type == "response.completed"]
    parts = [part for item in final.output for part in item.content]
    cited = [one.to_dict() for part in parts for one in part.annotations]
    assert [one.annotation.to_dict() for one in added] == cited


@SAYS
def test_chat_completions_cite_it_and_the_content_is_the_answer_alone(
    client: Client, says: Says
) -> None:
    api = openai.OpenAI(base_url=f"{client.url}/v1", api_key=client.token, max_retries=0)
    asked: Any = {"model": "demo", "messages": [{"role": "user", "content": "go"}]}
    with bound(client.user, says), api:
        message: Any = api.chat.completions.create(**asked).choices[0].message
        chunks: list[Any] = list(api.chat.completions.create(**asked, stream=True))
    assert message.content == "Here is the plan."
    (cited,) = message.annotations or []
    assert (cited.type, cited.url_citation.title) == ("url_citation", "plan.txt")
    assert cited.url_citation.start_index == cited.url_citation.end_index == 17
    assert held(client, cited.url_citation.url) == PLAN
    deltas = [one.choices[0].delta.to_dict() for one in chunks]
    assert "".join(str(one.get("content") or "") for one in deltas) == "Here is the plan."
    (told,) = [one["annotations"] for one in deltas if "annotations" in one]
    assert told[0]["url_citation"]["title"] == "plan.txt"


@SAYS
def test_the_agent_api_has_it_as_a_file(client: Client, says: Says) -> None:
    body = {"input": [{"role": "user", "content": [{"type": "text", "text": "go"}]}], "stream": False}
    with bound(client.user, says):
        answer = client.http.post("/process", json=body).json()
    contents = [content for message in answer["output"] for content in message["content"]]
    (file,) = [one for one in contents if one["type"] == "file"]
    assert file["filename"] == "plan.txt"
    assert held(client, file["file_url"]) == PLAN


@SAYS
def test_a_text_run_says_it_at_its_end(client: Client, says: Says) -> None:
    with bound(client.user, says):
        frames = client.watch(client.start("go")["run_id"])
    assert reply(frames) == "Here is the plan."
    (made,) = frames[-1].data["metadata"]["artifacts"]
    assert (made["name"], made["mime_type"], made["size_bytes"]) == ("plan.txt", "text/plain", 11)
    assert held(client, made["url"]) == PLAN


@SAYS
def test_ag_ui_shows_it_as_an_activity(client: Client, says: Says) -> None:
    body = {
        "threadId": str(uuid4()),
        "runId": str(uuid4()),
        "messages": [{"id": "m1", "role": "user", "content": "go"}],
    }
    with bound(client.user, says):
        answer = client.http.post("/api/v1/agent/ag-ui", json=body)
    seen = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    (shown,) = [one for one in seen if one["type"] == "ACTIVITY_SNAPSHOT"]
    assert (shown["activityType"], shown["content"]["name"]) == ("parley.artifact", "plan.txt")
    assert held(client, shown["content"]["url"]) == PLAN


@SAYS
def test_the_runners_own_stream_says_where_it_is(make_client: Callable[..., Client], says: Says) -> None:
    staff = make_client(is_staff=True, is_superuser=True)
    declared = manifest(f"python:a{uuid4().hex[:8]}")
    with serving(Scripted(declared, says)):
        path = f"/api/v1/agent/runners/{declared.id}/run"
        answer = staff.http.post(path, json={"input": {"text": "go"}})
    (made,) = [one for one in lines(answer) if one["type"] == "artifact.created"]
    assert held(staff, made["data"]["url"]) == PLAN


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines() if line]


def test_the_address_is_its_owners_alone(client: Client, make_client: Callable[..., Client]) -> None:
    with bound(client.user, beside_words):
        frames = client.watch(client.start("go")["run_id"])
    (made,) = frames[-1].data["metadata"]["artifacts"]
    other = make_client().http.get(made["url"])
    assert (other.status_code, other.json()["code"]) == (404, "artifact_not_found")

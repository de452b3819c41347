"""The runner routes as an attacker meets them: bad bodies, other people's ids, what is too large."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.host_protocol import results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from tests.support.client import Client
from tests.support.host.stage import Scripted, manifest, serving
from tests.support.pictures import picture
from tests.support.properties.effort import examples

pytestmark = pytest.mark.once

Make = Callable[..., Client]
LIST = "/api/v1/agent/runners"


async def _says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
    yield results.message(context.run_id, f"for {(context.actor and context.actor.actor_id)}")


@pytest.fixture
def path() -> Iterator[str]:
    """Where a runner is run that says whose run it has."""
    declared = manifest(f"plugin:acme/p{uuid4().hex[:6]}/default")
    with serving(Scripted(declared, _says)):
        yield f"{LIST}/{declared.id}/run"


@pytest.fixture
def staff(make_client: Make) -> Client:
    return make_client(is_staff=True, is_superuser=True)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
BODY = st.fixed_dictionaries(
    {},
    optional={
        "input": st.fixed_dictionaries({}, optional={"text": ANY, "contents": ANY}) | ANY,
        "event": st.fixed_dictionaries({}, optional={"event_id": ANY, "event_type": ANY}) | ANY,
        "conversation": st.fixed_dictionaries({}, optional={"conversation_id": ANY}) | ANY,
        "run_id": ANY,
        "model": ANY,
        "metadata": st.fixed_dictionaries({}, optional={"params": ANY}) | ANY,
        "resources": ANY,
    },
)


def test_no_body_breaks_the_server(staff: Client, path: str) -> None:
    """Whatever is posted: a result stream that ends, or our own error with a code."""

    @settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
    @given(BODY | ANY)
    def post(body: Any) -> None:
        answer = staff.http.post(path, content=json.dumps(body))
        assert answer.status_code in (200, 400, 403, 404, 409, 413, 422), answer.text
        if answer.status_code == 200:
            last = json.loads(answer.text.splitlines()[-1])
            assert last["type"] in ("run.completed", "run.failed")
        else:
            assert answer.json()["code"]
            assert "Traceback" not in answer.text

    post()


NO_RUNNERS = (
    "python:nobody", "plugin:a/b/c", "builtin:none", "plugin:..%2F..%2Fx", "%00", "x" * 5_000, "练", " ",
)  # fmt: skip


@pytest.mark.parametrize("runner_id", NO_RUNNERS)
def test_what_is_no_runner_is_not_there(staff: Client, runner_id: str) -> None:
    answer = staff.http.post(f"{LIST}/{runner_id}/run", json={"input": {"text": "hi"}})
    assert answer.status_code == 404, answer.text


def test_who_is_no_staff_sees_and_runs_nothing(client: Client, path: str) -> None:
    body = {"input": {"text": "hi"}}
    answers = [client.http.get(LIST), client.http.post(path, json=body)]
    assert [(one.status_code, one.json()["code"]) for one in answers] == [(403, "forbidden")] * 2
    bare = httpx.post(client.http.base_url.join(path), json=body, trust_env=False)
    assert bare.status_code == 401


def test_other_methods_are_refused(staff: Client, path: str) -> None:
    assert staff.http.post(LIST, json={}).status_code == 405
    assert staff.http.get(path).status_code == 405


def test_anothers_conversation_is_not_there_and_anothers_run_id_is_ones_own(
    make_client: Make, staff: Client, path: str
) -> None:
    other = make_client(is_staff=True, is_superuser=True)
    body = {"input": {"text": "hi"}, "run_id": uuid4().hex}
    talk = {"conversation": {"conversation_id": uuid4().hex}}
    mine = staff.http.post(path, json=body | talk)
    assert staff.user.pk.hex in mine.text
    taken = other.http.post(path, json={"input": {"text": "hi"}} | talk)
    assert (taken.status_code, taken.json()["code"]) == (404, "conversation_not_found")
    theirs = other.http.post(path, json=body)
    assert (staff.user.pk.hex in theirs.text, other.user.pk.hex in theirs.text) == (False, True)
    again = staff.http.post(path, json=body | talk)  # the same run, told once more
    assert [one["run_id"] for one in lines(again)] == [one["run_id"] for one in lines(mine)]
    differs = staff.http.post(path, json=body | talk | {"input": {"text": "something else"}})
    assert (differs.status_code, differs.json()["code"]) == (409, "run_id_already_used")
    run_id = lines(mine)[0]["run_id"]
    assert other.http.get(f"/api/v1/agent/runs/{run_id}/events").status_code == 404


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines() if line]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"input": {"text": "x" * 3_000_000}}, 413),
        ({"input": {"text": "x"}, "metadata": {"params": {"a": "y" * 3_000_000}}}, 413),
        ({"input": {"text": "x"}, "run_id": "r" * 129}, 422),
        ({"input": {"text": "x"}, "conversation": {"conversation_id": "c" * 129}}, 422),
        ({"input": {"text": "x"}, "model": "m" * 10_000}, 422),
        ({"input": {"text": "\x00"}}, 422),
    ],
)
def test_what_is_too_large_or_no_text_is_refused(
    staff: Client, path: str, body: dict[str, Any], status: int
) -> None:
    answer = staff.http.post(path, json=body)
    assert answer.status_code == status, answer.text[:300]
    assert answer.json()["code"]


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"[" * 20_000, b'{"input": NaN}', b"null"])
def test_what_is_no_json_object_is_refused(staff: Client, path: str, raw: bytes) -> None:
    answer = staff.http.post(path, content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text[:300]
    assert answer.json()["code"]


def test_a_caller_cannot_grant_resources_or_name_another_actor(staff: Client) -> None:
    """An AgentRunContext's other fields are the Host's to say: what a body claims of them is ignored."""
    seen: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        seen.append(context)
        yield results.message(context.run_id, "ok")

    declared = manifest(f"plugin:acme/p{uuid4().hex[:6]}/default")
    claimed = {
        "input": {"text": "hi", "attachments": [{"artifact_id": uuid4().hex}]},
        "actor": {"actor_type": "user", "actor_id": uuid4().hex},
        "resources": {"models": [{"model_id": "global:xai"}], "storage": {"workspace_storage": True}},
        "runtime": {"deadline_at": 9e12},
        "state": {"actor": {"k": "v"}},
        "config": {"key": "v"},
        "metadata": {"params": {"api_key": "s", "_private": 1, "tone": "dry"}},
    }
    with serving(Scripted(declared, says)):
        assert staff.http.post(f"{LIST}/{declared.id}/run", json=claimed).status_code == 200
    (told,) = seen
    assert told.actor is not None
    assert told.actor.actor_id == staff.user.pk.hex
    assert "global:xai" not in [one.model_id for one in told.resources.models]
    assert not told.resources.storage.workspace_storage
    assert (told.runtime.deadline_at or 9e12) < 9e11
    assert (told.state.actor, told.config, told.input.attachments) == ({}, {}, ())
    assert told.metadata["params"] == {"tone": "dry"}


def test_images_and_texts_of_the_body_reach_the_runner_and_other_kinds_are_refused(
    staff: Client,
) -> None:
    seen: list[tuple[AgentRunContext, bytes]] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        first = context.input.attachments[0]
        held = await host.artifacts.read_range(first.artifact_id)
        seen.append((context, held.content or b""))
        yield results.message(context.run_id, "ok")

    declared = manifest(f"plugin:acme/p{uuid4().hex[:6]}/default")
    picture_of = base64.b64encode(picture("PNG", (8, 6))).decode()
    contents: list[dict[str, Any]] = [
        {"type": "image_base64", "image_base64": f"data:image/png;base64,{picture_of}"},
        {"type": "text", "text": "look"},
        {"type": "file_base64", "file_base64": "YSxi", "file_name": "a.csv"},
    ]
    with serving(Scripted(declared, says)):
        url = f"{LIST}/{declared.id}/run"
        assert staff.http.post(url, json={"input": {"contents": contents}}).status_code == 200
        assert staff.http.post(url, json={"input": {"contents": contents[:1]}}).status_code == 200
        for part, code in (
            ({"type": "voice_base64", "text": "x"}, "unsupported_file"),
            ({"type": "image_url", "image_url": {"url": "https://127.0.0.1/a"}}, "url_refused"),
            ({"type": "file_base64", "file_base64": "JVBERi0xLjc="}, "unsupported_file"),
            ({"type": "file_base64"}, "file_required"),
        ):
            refused = staff.http.post(url, json={"input": {"contents": [part]}})
            assert (refused.status_code, refused.json()["code"]) == (422, code)
            assert refused.json()["param"].startswith("input.contents[0]")
    (whole, shown), (silent, _) = seen
    assert (whole.input.text, silent.input.text) == ("look", "")
    kinds = [(ref.artifact_type, ref.mime_type) for ref in whole.input.attachments]
    assert kinds == [("image", "image/png"), ("file", "text/plain")]
    assert whole.input.attachments[1].name == "a.csv"
    assert shown.startswith(b"\x89PNG")
    assert [part.type for part in whole.input.contents] == ["text"], "here it asks for what it needs"

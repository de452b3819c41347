"""Prompts over REST (specs/text-run.md §4): for staff, versions underneath, one active for each type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from prompts.models import Prompt, PromptVersion
from prompts.wordings import active, prompt_crud, staff_actions
from tests.support.client import Client

pytestmark = pytest.mark.once

PROMPTS = "/api/v1/llm/prompts"
PREVIEW = "/api/v1/llm/tests/active-agent-prompts"
Made = Callable[..., Client]


@pytest.fixture
def staff(make_client: Made) -> Client:
    return make_client(is_staff=True)


@pytest.fixture
def active_kept() -> Iterator[None]:
    """The prompts in use, put back afterwards."""
    before = list(Prompt.objects.filter(is_active=True).select_related("active_version"))
    yield
    Prompt.objects.filter(is_active=True).update(is_active=False)
    for prompt in before:
        assert prompt.active_version is not None
        staff_actions.activate_version(prompt.active_version, by=None)


def make(staff: Client, **more: Any) -> dict[str, Any]:
    body = {"name": uuid4().hex, "content": "One.", "prompt_type": "system"} | more
    response = staff.http.post(PROMPTS, json=body)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()["data"]
    return made


def put(staff: Client, prompt: dict[str, Any], **change: Any) -> Any:
    return staff.http.put(f"{PROMPTS}/{prompt['id']}", json=change)


def read(staff: Client, prompt: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = staff.http.get(f"{PROMPTS}/{prompt['id']}").json()["data"]
    return found


def test_a_prompt_is_made_read_and_listed(staff: Client) -> None:
    tools = [{"name": "search", "parameters": {}}]
    made = make(staff, category="fitness", description="Text.", tools_json=tools)
    assert made == read(staff, made)
    assert {key: made[key] for key in made if key not in {"id", "name", "created_at", "updated_at"}} == {
        "content": "One.",
        "version": 1,
        "category": "fitness",
        "description": "Text.",
        "tools_json": tools,
        "prompt_type": "system",
        "is_active": False,
        "active_version": None,
    }
    total = Prompt.objects.filter(kind="system", deleted_at=None).count()
    seen: list[Any] = []
    for number in range(1, total // 50 + 2):
        params: dict[str, Any] = {"page": number, "page_size": 50, "prompt_type": "system"}
        listed = staff.http.get(PROMPTS, params=params).json()
        assert (listed["code"], listed["msg"], listed["total"]) == (200, "success", total)
        assert (listed["page"], listed["page_size"]) == (number, 50)
        seen += listed["data"]
    assert made in seen
    assert len({item["id"] for item in seen}) == len(seen) == total
    assert PromptVersion.objects.get(prompt_id=made["id"]).author == staff.user


def test_a_put_makes_a_new_version_and_leaves_the_old_one(staff: Client) -> None:
    made = make(staff)
    changed = put(staff, made, content="Two.", note="Why.").json()["data"]
    assert changed == made | {"content": "Two.", "version": 2, "updated_at": changed["updated_at"]}
    assert put(staff, made, content="Two.").json()["data"]["version"] == 2
    whole = put(staff, made, **changed | {"name": f"n{made['name']}"})
    assert (whole.status_code, whole.json()["data"]["version"]) == (200, 2)
    versions = PromptVersion.objects.filter(prompt_id=made["id"]).order_by("number")
    assert [(version.content, version.note) for version in versions] == [("One.", ""), ("Two.", "Why.")]


def test_one_prompt_of_a_type_is_active_and_a_put_on_it_takes_effect(
    staff: Client, active_kept: None
) -> None:
    first, second = (make(staff, prompt_type="agent_system", content=c) for c in ("First.", "Second."))
    for prompt in (first, second):
        shown = staff.http.post(f"{PROMPTS}/{prompt['id']}/activate").json()["data"]
        assert (shown["is_active"], shown["active_version"]) == (True, 1)
    assert not read(staff, first)["is_active"]
    put(staff, second, content="Third.")
    assert read(staff, second)["active_version"] == 2
    preview = staff.http.get(PREVIEW).json()["data"]
    assert preview["agent_system"] == {
        "id": second["id"],
        "name": second["name"],
        "version": 2,
        "content": "Third.",
        "tools_json": None,
    }
    assert preview["system_message"] == active.read_system_message()
    assert preview["system_message"].startswith("Third.\n\n")
    back = staff.http.post(f"{PROMPTS}/{second['id']}/activate", json={"version": 1}).json()["data"]
    assert (back["active_version"], back["version"]) == (1, 2)
    assert put(staff, second, is_active=False).json()["data"]["is_active"] is False
    assert staff.http.get(PREVIEW).json()["data"]["agent_system"] is None


def test_a_deleted_prompt_is_gone_and_what_it_said_stays(staff: Client, active_kept: None) -> None:
    made = make(staff, prompt_type="agent_tools", is_active=True)
    refused = staff.http.delete(f"{PROMPTS}/{made['id']}")
    assert (refused.status_code, refused.json()["code"]) == (409, "prompt_active")
    put(staff, made, is_active=False)
    assert staff.http.delete(f"{PROMPTS}/{made['id']}").json()["data"] == {"id": made["id"]}
    for method in ("GET", "PUT", "DELETE"):
        gone = staff.http.request(method, f"{PROMPTS}/{made['id']}", json={})
        assert (gone.status_code, gone.json()["code"]) == (404, "prompt_not_found")
    assert staff.http.post(f"{PROMPTS}/{made['id']}/activate").status_code == 404
    assert PromptVersion.objects.get(prompt_id=made["id"]).content == "One."
    assert make(staff, name=made["name"])["id"] != made["id"]


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": "  "},
        {"name": "nul \x00"},
        {"name": "half \ud800"},
        {"name": "n" * 201},
        {"content": 7},
        {"content": "nul \x00"},
        {"content": "x" * 200_001},
        {"prompt_type": "loud"},
        {"category": "c" * 101},
        {"description": 1},
        {"tools_json": "text"},
        {"tools_json": [1]},
        {"tools_json": [{"nul": "\x00"}]},
        {"tools_json": [json.loads("[" * 99 + "]" * 99)]},
        {"is_active": "yes"},
        {"note": "n" * 501},
        {"surprise": 1},
    ],
)
def test_a_bad_prompt_is_refused_and_nothing_is_made(staff: Client, change: dict[str, Any]) -> None:
    name = uuid4().hex
    body = json.dumps({"name": name, "content": "One.", "prompt_type": "system"} | change)
    headers = {"Content-Type": "application/json"}
    refused = staff.http.post(PROMPTS, content=body, headers=headers)
    assert refused.status_code == 422, refused.text
    assert not Prompt.objects.filter(name=name).exists()
    made = make(staff)
    again = staff.http.put(f"{PROMPTS}/{made['id']}", content=json.dumps(change), headers=headers)
    assert again.status_code == 422, again.text
    assert read(staff, made) == made


def test_other_refusals(staff: Client) -> None:
    made, other = make(staff), make(staff)
    assert put(staff, made, prompt_type="tools").status_code == 422
    taken = put(staff, made, name=other["name"])
    assert (taken.status_code, taken.json()["code"]) == (409, "prompt_name_taken")
    assert staff.http.post(PROMPTS, json={"name": "x"}).status_code == 422
    assert staff.http.post(PROMPTS, json=[]).status_code == 422
    for version in (0, "1", 2.5, True, 10**12):
        refused = staff.http.post(f"{PROMPTS}/{made['id']}/activate", json={"version": version})
        assert refused.status_code == 422
    missing = staff.http.post(f"{PROMPTS}/{made['id']}/activate", json={"version": 9})
    assert (missing.status_code, missing.json()["code"]) == (404, "prompt_version_not_found")
    assert staff.http.get(f"{PROMPTS}/{10**30}").status_code == 404
    for query in (
        "page=0",
        "page=x",
        "page_size=101",
        "page=9999999999",
        "prompt_type=x",
        "is_active=1",
    ):
        assert staff.http.get(f"{PROMPTS}?{query}").status_code == 422, query
    assert staff.http.get(f"{PROMPTS}?page=1000000").json()["data"] == []


def test_only_staff_see_prompts(make_client: Made, client: Client, staff: Client) -> None:
    made = make(staff)
    one = f"{PROMPTS}/{made['id']}"
    calls = [
        ("GET", PROMPTS),
        ("POST", PROMPTS),
        ("GET", one),
        ("PUT", one),
        ("DELETE", one),
        ("POST", f"{one}/activate"),
        ("GET", PREVIEW),
    ]
    guest = make_client(is_guest=True)
    for who, code in ((client, "llm_admin_required"), (guest, "ANONYMOUS_ACCESS_DENIED")):
        for method, path in calls:
            refused = who.http.request(method, path, json={})
            assert (refused.status_code, refused.json()["code"]) == (403, code)
    assert read(staff, made) == made


def test_listing_costs_the_same_however_many_there_are(staff: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            prompt_crud.list_page(number=1, size=100, kind=None, is_active=None)
        return len(captured)

    before = queries()
    make(staff)
    assert queries() == before == 2

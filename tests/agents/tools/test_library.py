"""The published exercise library: what apps fetch, and how staff publish (specs/text-run.md §3)."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.test import Client as Browser

from agents.models import Exercise, LibraryVersion, official_id
from agents.tools.exercises.library_versions import publish
from agents.tools.exercises.seed import starter_items
from agents.tools.exercises.store import import_items
from tests.support.client import Client
from tests.support.exercise_library import DATA

pytestmark = pytest.mark.once

LIBRARY = "/api/v1/exercise/library"
ADMIN = "/api/v1/admin/exercise/library"
Made = Callable[..., Client]


@pytest.fixture
def library() -> Iterator[None]:
    """The library as it is and as it is published, put back afterwards."""
    rows = list(Exercise.objects.all())
    publish(by=None)
    yield
    with transaction.atomic():
        Exercise.objects.all().delete()
        Exercise.objects.bulk_create(rows)
    publish(by=None)


@pytest.fixture
def staff(make_client: Made) -> Client:
    return make_client(is_staff=True)


def get(client: Client, path: str, **headers: str) -> Any:
    return client.http.get(f"{LIBRARY}/{path}", headers=headers)


def meta(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = get(client, "meta").json()
    return found


def post(client: Client, what: str, body: Any) -> Any:
    headers = {"Content-Type": "application/json"}  # in ASCII: httpx sends no half of a pair
    return client.http.post(f"{ADMIN}/{what}", content=json.dumps(body), headers=headers)


def exercise(name: str, **more: Any) -> dict[str, Any]:
    facts = {"name": name, "muscleGroup": "CHEST", "category": "UPPER_BODY", "equipment": ["NONE"]}
    return facts | {"description": "Text."} | more


# --- reading ------------------------------------------------------------------------------------


def test_the_newest_version_says_what_and_where_it_is(client: Client) -> None:
    found = meta(client)
    assert set(found) == {"version", "totalCount", "lastUpdated", "checksum", "downloadUrl"}
    newest = LibraryVersion.objects.latest("number")
    assert (found["version"], found["totalCount"]) == (newest.number, newest.total)
    assert found["downloadUrl"].endswith(f"{LIBRARY}/full?version={newest.number}")
    body = get(client, f"full?version={newest.number}")
    assert f"sha256:{hashlib.sha256(body.content).hexdigest()}" == found["checksum"]
    assert len(body.json()) == found["totalCount"]
    assert found["lastUpdated"] == pytest.approx(time.time() * 1000, abs=3_600_000)


def test_no_exercise_was_changed_before_it_was_made(client: Client, library: None) -> None:
    Exercise.objects.all().delete()
    assert import_items(starter_items()).created == 103
    publish(by=None)
    dates = [(one["createdAt"], one["updatedAt"]) for one in get(client, "full").json()]
    assert len(dates) == 103
    assert [date for date in dates if date[1] < date[0]] == []


@pytest.mark.parametrize("path", ["meta", "full"])
def test_who_has_the_version_already_gets_304(client: Client, path: str) -> None:
    first = get(client, path)
    tag = first.headers["ETag"]
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = get(client, path, **{"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert get(client, path, **{"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("gzip, br", "gzip"), ("identity", None), ("gzip;q=0", None), ("*", "gzip"), ("", None)],
)
def test_the_library_comes_gzipped_to_who_takes_it(
    client: Client, accepted: str, coding: str | None
) -> None:
    response = get(client, "full", **{"Accept-Encoding": accepted})
    assert response.headers.get("Content-Encoding") == coding
    assert "Accept-Encoding" in response.headers["Vary"]
    assert len(response.json()) == meta(client)["totalCount"]


def test_guests_read_the_library_and_strangers_do_not(make_client: Made, client: Client) -> None:
    guest = make_client(is_guest=True)
    for path in ("meta", "full", "updates?from=0"):
        assert get(guest, path).status_code == 200
        stranger = client.http.get(f"{LIBRARY}/{path}", headers={"Authorization": ""})
        assert stranger.status_code == 401


def test_from_nothing_everything_is_added(client: Client) -> None:
    version = meta(client)["version"]
    changes = get(client, f"updates?from=0&to={version}").json()
    assert set(changes) == {"fromVersion", "toVersion", "added", "updated", "deleted", "timestamp"}
    assert changes["added"] == get(client, "full").json()
    assert (changes["updated"], changes["deleted"]) == ([], [])
    assert (changes["fromVersion"], changes["toVersion"]) == (0, version)
    same = get(client, f"updates?from={version}").json()
    assert (same["added"], same["updated"], same["deleted"]) == ([], [], [])


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("full?version=999999", 404, "version_not_found"),
        ("full?version=0", 404, "version_not_found"),
        ("full?version=one", 422, "invalid_versions"),
        ("full?version=-1", 422, "invalid_versions"),
        ("full?version=99999999999999999999", 422, "invalid_versions"),
        ("updates", 422, "invalid_versions"),
        ("updates?from=999998&to=999999", 404, "version_not_found"),
        ("updates?from=999998", 422, "invalid_versions"),
        ("updates?from=0&to=9999999999", 422, "invalid_versions"),
    ],
)
def test_a_version_that_was_never_published_is_refused(
    client: Client, path: str, status: int, code: str
) -> None:
    response = get(client, path)
    assert (response.status_code, response.json()["code"]) == (status, code)


# --- publishing ---------------------------------------------------------------------------------


def test_what_staff_wrote_is_published_once(library: None, staff: Client, client: Client) -> None:
    before = meta(client)
    assert post(staff, "publish", {}).json() == before
    assert staff.http.post(f"{ADMIN}/publish").json() == before
    name = f"动作{uuid4().hex}"
    row = Exercise.objects.create(name=name, muscle_group="CHEST", category="STRENGTH")
    Exercise.objects.create(
        name=f"own {name}", muscle_group="CHEST", category="STRENGTH", is_custom=True
    )
    assert meta(client) == before
    made = post(staff, "publish", {"note": "One more."}).json()
    assert made == meta(client)
    assert (made["version"], made["totalCount"]) == (before["version"] + 1, before["totalCount"] + 1)
    changes = get(client, f"updates?from={before['version']}").json()
    assert [item["id"] for item in changes["added"]] == [row.pk]
    assert (
        get(client, f"full?version={before['version']}").headers["ETag"]
        != get(client, "full").headers["ETag"]
    )
    stored = LibraryVersion.objects.get(pk=made["version"])
    assert (stored.note, stored.published_by, stored.added) == ("One more.", staff.user, [row.pk])


def test_a_patch_adds_changes_and_deletes(library: None, staff: Client, client: Client) -> None:
    base = meta(client)["version"]
    pushed, gone = Exercise.objects.get(name="俯卧撑"), Exercise.objects.get(name="平板支撑")
    old = next(item for item in get(client, "full").json() if item["id"] == pushed.pk)
    name = f"新{uuid4().hex}"
    body = {
        "baseVersion": base,
        "added": [exercise(name)],
        "updated": [{"id": pushed.pk, "description": "更新后的描述", "updatedAt": 1, "defaultSets": 9}],
        "deleted": [gone.pk],
        "generatedAt": 1_767_398_400_000,
    }
    made = post(staff, "patch", body)
    assert made.status_code == 200, made.text
    assert (made.json()["version"], made.json()["lastUpdated"]) == (base + 1, 1_767_398_400_000)
    changes = get(client, f"updates?from={base}&to={base + 1}").json()
    assert [item["id"] for item in changes["added"]] == [official_id(name)]
    (changed,) = changes["updated"]
    assert changed == old | {
        "description": "更新后的描述",
        "defaultSets": 9,
        "updatedAt": changed["updatedAt"],
    }
    assert changed["updatedAt"] > old["updatedAt"]
    assert changes["deleted"] == [gone.pk]
    assert changes["timestamp"] == 1_767_398_400_000


def test_a_patch_of_an_older_version_is_a_conflict(library: None, staff: Client, client: Client) -> None:
    base = meta(client)["version"]
    for number in (base - 1, base + 1):
        refused = post(staff, "patch", {"baseVersion": number, "deleted": []})
        assert (refused.status_code, refused.json()["code"]) == (409, "version_conflict")
        assert refused.json()["currentVersion"] == base
        refused = post(staff, "publish", {"baseVersion": number})
        assert refused.status_code == 409


def test_of_patches_at_once_on_one_version_one_wins(
    library: None, staff: Client, client: Client
) -> None:
    base = meta(client)["version"]
    bodies = [{"baseVersion": base, "added": [exercise(f"{n}{uuid4().hex}")]} for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: post(staff, "patch", body).status_code, bodies))
    assert sorted(answers) == [200] + [409] * 7
    assert meta(client)["version"] == base + 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"deleted": ["off_00000000"]}, "exercise_unknown"),
        ({"updated": [{"id": "off_00000000", "description": "x"}]}, "exercise_unknown"),
        ({"updated": [{"description": "x"}]}, "invalid_request"),
        ({"updated": [{"id": {"a": 1}}]}, "invalid_request"),
        ({"added": [{"name": "x"}]}, "invalid_exercises"),
        ({"added": [exercise("x", equipment=["ROPE"])]}, "invalid_exercises"),
        ({"added": [exercise("nul \x00")]}, "invalid_exercises"),
        ({"added": [exercise("x"), exercise("x")]}, "invalid_exercises"),
        ({"added": [exercise("杠铃卧推")]}, "invalid_request"),
        ({"added": ["x"]}, "invalid_request"),
        ({"deleted": ["\x00"]}, "invalid_request"),
        ({"surprise": 1}, "invalid_request"),
        ({"baseVersion": "1"}, "invalid_request"),
        ({"generatedAt": 10**18}, "invalid_request"),
        ({"note": "\x00"}, "invalid_request"),
        ({"note": "half \ud800"}, "invalid_characters"),
        ({"deleted": ["half \ud800"]}, "invalid_characters"),
        ({"added": [exercise("half \ud800")]}, "invalid_characters"),
    ],
)
def test_a_bad_patch_changes_nothing(
    library: None, staff: Client, client: Client, change: dict[str, Any], code: str
) -> None:
    before = meta(client)
    name = f"half {uuid4().hex}"
    body = {"baseVersion": before["version"], "added": [exercise(name)]} | change
    refused = post(staff, "patch", body)
    assert (refused.status_code, refused.json()["code"]) == (422, code), refused.text
    assert meta(client) == before
    assert not Exercise.objects.filter(name=name).exists()


@pytest.mark.parametrize(
    "body", [[], "x", 7, {"payload": {}}, {"payload": [], "x": 1}, {"note": "half \ud800"}]
)
def test_a_body_that_is_no_library_is_refused(staff: Client, client: Client, body: Any) -> None:
    before = meta(client)
    assert post(staff, "publish", body).status_code == 422
    assert meta(client) == before
    assert post(staff, "patch", body).status_code == 422


def test_a_seed_replaces_the_library(library: None, staff: Client, client: Client) -> None:
    own = Exercise.objects.create(
        name=uuid4().hex, muscle_group="CHEST", category="STRENGTH", is_custom=True
    )
    seed = {
        "$schema": "./exercise_schema.json",
        "schemaVersion": "1.0.0",
        "entity": "EXERCISE",
        "entityVersion": 2,
        "generatedAt": 1_767_398_400_000,
        "totalCount": 1,
        "description": "One.",
        "payload": [exercise("杠铃卧推", description="Neu.")],
    }
    assert post(staff, "publish", seed | {"totalCount": 2}).status_code == 422
    made = post(staff, "publish", seed)
    assert made.status_code == 200, made.text
    assert made.json()["totalCount"] == 1
    assert [item["id"] for item in get(client, "full").json()] == [official_id("杠铃卧推")]
    assert set(Exercise.objects.values_list("pk", flat=True)) == {official_id("杠铃卧推"), own.pk}


def test_only_staff_publish(make_client: Made, client: Client) -> None:
    guest = make_client(is_guest=True)
    for what, body in (("publish", {}), ("patch", {"baseVersion": 1})):
        refused = post(client, what, body)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        refused = post(guest, what, body)
        assert (refused.status_code, refused.json()["code"]) == (403, "ANONYMOUS_ACCESS_DENIED")
        unknown = client.http.post(f"{ADMIN}/{what}", json=body, headers={"Authorization": ""})
        assert unknown.status_code == 401


# --- size ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not (DATA / "free-exercise-db").exists(), reason="the free libraries are not here")
def test_both_free_libraries_are_imported_and_published(
    library: None, staff: Client, client: Client
) -> None:
    from django.core.management import call_command

    base = meta(client)
    for path in ("free-exercise-db/exercises.json", "gymbro-seed/exercise_official_seed.json"):
        call_command("import_exercises", str(DATA / path), verbosity=0)
    made = post(staff, "publish", {}).json()
    assert made["totalCount"] > 900
    seed = json.loads((DATA / "gymbro-seed" / "exercise_official_seed.json").read_text())
    published = {item["name"]: item["id"] for item in get(client, "full").json()}
    assert {published[item["name"]] for item in seed["payload"]} == {
        item["id"] for item in seed["payload"]
    }
    changes = get(client, f"updates?from={base['version']}").json()
    assert len(changes["added"]) == made["totalCount"] - base["totalCount"]
    packed = LibraryVersion.objects.get(pk=made["version"]).content
    assert len(packed) * 3 < len(gzip.decompress(bytes(packed)))


# --- admin --------------------------------------------------------------------------------------


def test_staff_publish_in_admin_after_a_question_and_see_the_history(library: None) -> None:
    from django.contrib.auth import get_user_model

    user = get_user_model().objects.create_user(username=uuid4().hex, is_staff=True, is_superuser=True)
    browser = Browser()
    browser.force_login(user)
    Exercise.objects.create(name=uuid4().hex, muscle_group="CHEST", category="STRENGTH")
    before = LibraryVersion.objects.latest("number").number
    pages = "/admin/agents"
    assert b"Publish to apps" in browser.get(f"{pages}/exercise/").content
    asked = browser.get(f"{pages}/exercise/publish/")
    assert asked.status_code == 200
    assert LibraryVersion.objects.latest("number").number == before
    done = browser.post(f"{pages}/exercise/publish/", follow=True)
    assert f"Version {before + 1} is published: 1 added".encode() in done.content
    again = browser.post(f"{pages}/exercise/publish/", follow=True)
    assert b"nothing to publish" in again.content
    listed = browser.get(f"{pages}/libraryversion/")
    assert b"1 added, 0 updated, 0 deleted" in listed.content
    shown = browser.get(f"{pages}/libraryversion/{before + 1}/change/")
    assert shown.status_code == 200
    assert browser.get(f"{pages}/libraryversion/add/").status_code == 403


def test_publishing_what_is_published_makes_no_version(library: None) -> None:
    assert publish(by=None).number == publish(by=None).number

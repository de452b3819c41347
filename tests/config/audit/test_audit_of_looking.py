"""Who has read, exported, run again, cancelled, decided and signed in is in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
import structlog
from django.contrib.auth import get_user_model
from django.test import Client as Browser

from config.audit.models import AuditEntry
from conversations.models import Interrupt, Run
from tests.support.client import Client
from tests.support.log_lines import lines_about

pytestmark = pytest.mark.once

PASSWORD = "a long enough passphrase"
THREADS = "/admin/conversations/thread/"
RUNS = "/admin/conversations/run/"
DOORS = ("/admin/login/", "/chat/login/", "/api/v1/auth/token")


def entries(thing_id: Any) -> list[tuple[str, str]]:
    """Who has done what to a thing, the oldest first."""
    found = AuditEntry.objects.filter(object_id=str(thing_id)).order_by("id")
    return [(entry.actor_name, entry.action) for entry in found]


@pytest.fixture
def staff() -> Any:
    return get_user_model().objects.create_superuser(f"admin-{uuid4().hex}", password=PASSWORD)


@pytest.fixture
def browser(staff: Any) -> Browser:
    made = Browser()
    made.force_login(staff)
    return made


def test_reading_exporting_and_running_again_are_recorded_without_a_word_of_it(
    client: Client, browser: Browser, staff: Any
) -> None:
    run_id = client.start("My secret title")["run_id"]
    client.wait_for(run_id, "completed")
    run = Run.objects.get(pk=run_id)
    assert browser.get(f"{THREADS}{run.thread_id}/change/").status_code == 200
    cookie = "; ".join(f"{name}={one.value}" for name, one in browser.cookies.items())
    export = f"{THREADS}{run.thread_id}/export-markdown/"
    assert client.http.get(export, headers={"Cookie": cookie}).status_code == 200
    assert browser.get(f"{RUNS}{run.pk}/change/").status_code == 200
    assert browser.post(f"{RUNS}{run.pk}/rerun/", {}).status_code == 302
    assert entries(run.thread_id) == [(staff.username, "read"), (staff.username, "exported")]
    assert entries(run.pk) == [(staff.username, "read"), (staff.username, "run again")]
    told = AuditEntry.objects.filter(object_id__in=[str(run.thread_id), str(run.pk)])
    assert "secret" not in str(list(told.values()))


def test_what_is_not_there_or_not_to_be_seen_is_not_recorded(browser: Browser, client: Client) -> None:
    nobody = uuid4()
    assert browser.get(f"{THREADS}{nobody}/change/").status_code == 302
    assert browser.get(f"{THREADS}{nobody}/export-json/").status_code == 404
    assert entries(nobody) == []


def test_a_run_that_staff_cancel_is_recorded(
    client: Client, browser: Browser, staff: Any, scripted: Callable[..., Any]
) -> None:
    run_id = client.start("much", model=scripted("endless").name)["run_id"]
    client.wait_for(run_id, "running")
    assert browser.get(f"{RUNS}{UUID(run_id)}/cancel/").status_code == 200
    assert browser.post(f"{RUNS}{UUID(run_id)}/cancel/").status_code == 302
    client.wait_for(run_id, "cancelled")
    assert entries(UUID(run_id)) == [(staff.username, "cancelled")]


@pytest.mark.parametrize("door", ["admin", "api"])
def test_what_staff_decide_for_others_is_recorded_and_what_people_decide_for_themselves_is_not(
    client: Client, make_client: Callable[..., Client], browser: Browser, staff: Any, door: str
) -> None:
    ids = []
    for text in ("mine", "theirs"):
        run_id = client.start(f"approve demo.note {text}")["run_id"]
        client.wait_for(run_id, "completed")
        ids.append(Interrupt.objects.get(run_id=run_id).pk)
    answer = client.http.post(f"/api/v1/agent/approvals/{ids[0]}", json={"approve": True})
    assert answer.status_code == 200, answer.text
    if door == "admin":
        path = f"/admin/conversations/interrupt/{ids[1]}/decide/"
        assert browser.post(path, {"arguments": '{"text": "no"}'}).status_code == 302
        name = staff.username
    else:
        owner = make_client(is_staff=True)
        path = f"/api/v1/agent/approvals/{ids[1]}"
        assert owner.http.post(path, json={"approve": False}).status_code == 200
        name = owner.user.username
    assert entries(ids[0]) == []
    assert entries(ids[1]) == [(name, "refused")]


def sign_in(door: str, sent: dict[str, str], address: str) -> int:
    kind: dict[str, Any] = {"content_type": "application/json"} if door.startswith("/api/") else {}
    status: int = Browser().post(door, sent, REMOTE_ADDR=address, **kind).status_code
    return status


@pytest.mark.parametrize("door", DOORS)
def test_staff_who_sign_in_are_recorded_by_name_and_address(door: str, staff: Any) -> None:
    sent = {"username": staff.username, "password": PASSWORD}
    assert sign_in(door, sent, "192.0.2.7") in (200, 302)
    entry = AuditEntry.objects.filter(object_id=str(staff.pk)).latest("id")
    assert (entry.actor, entry.action, entry.after) == (staff, "signed in", {"address": "192.0.2.7"})


def test_of_people_the_log_knows_the_id_alone() -> None:
    user = get_user_model().objects.create_user(f"person-{uuid4().hex}", password=PASSWORD)
    sent = {"username": user.username, "password": PASSWORD}
    assert Browser().post("/chat/login/", sent).status_code == 302
    assert entries(user.pk)[-1] == ("parley", "signed in")
    assert user.username not in str(list(AuditEntry.objects.filter(object_id=str(user.pk)).values()))


@pytest.mark.parametrize("door", DOORS)
def test_wrong_passwords_are_one_entry_a_minute_and_a_line_each(door: str, staff: Any) -> None:
    address = f"2001:db8:{uuid4().hex[:4]}::1"
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            sent = {"username": staff.username, "password": "wrong"}
            assert sign_in(door, sent, address) in (200, 401)
    refused = [line for line in lines if line["event"] == "sign-in refused"]
    assert [line["account"] for line in refused] == [str(staff.pk)] * 3
    assert "wrong" not in str(refused)
    assert [entry for entry in entries(staff.pk) if entry[1] == "sign-in refused"] == [
        ("parley", "sign-in refused")
    ]


def test_a_name_that_is_nobodys_is_kept_nowhere() -> None:
    typed = f"my-password-{uuid4().hex}"
    newest = AuditEntry.objects.order_by("id").last()
    with lines_about("sign-in") as lines:
        Browser().post("/admin/login/", {"username": typed, "password": "x"})
    assert [line["event"] for line in lines] == ["sign-in refused"]
    assert typed not in str(lines)
    since = AuditEntry.objects.filter(id__gt=newest.pk if newest else 0)
    assert not since.filter(action__in=["signed in", "sign-in refused"]).exists()

"""Uploads over HTTP, and what is left of them."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import httpx

from conversations.attachments import spool
from conversations.models import Attachment, Message, Thread
from tests.support.client import Client

ADDRESS = "/api/v1/agent/attachments"
MIB = 2**20


def send(client: Client, data: bytes, name: str = "a.jpg", **fields: str) -> httpx.Response:
    """Upload these bytes under this name; the answer."""
    return client.http.post(ADDRESS, files={"file": (name, data)}, data=fields)


def upload(client: Client, data: bytes, **fields: str) -> dict[str, str]:
    """Upload what is taken; what the API says of it."""
    response = send(client, data, **fields)
    assert response.status_code == 201, response.text
    answer: dict[str, str] = response.json()
    return answer


def fetch(client: Client, url: str, method: str = "GET", **headers: str) -> httpx.Response:
    """As a browser would, without a token of its own; PUBLIC_URL is not this server's in tests."""
    raw = httpx.URL(url).raw_path.decode()
    address = client.url + raw
    return httpx.request(method, address, headers=headers, trust_env=False, timeout=client.http.timeout)


def left_over() -> list[Path]:
    """The unfinished uploads of this process."""
    return list(spool.spool_folder().glob("*"))


def noted(client: Client) -> set[str]:
    return set(Attachment.objects.filter(owner_id=client.user.pk).values_list("path", flat=True))


def say(client: Client, thread_id: UUID, *answers: dict[str, str]) -> Message:
    """A message of the client's that names files, as a run stores it."""
    thread, _ = Thread.objects.get_or_create(pk=thread_id, defaults={"owner": client.user})
    thread.last_seq += 1
    thread.save()
    named = [{name: answer[name] for name in ("bucket", "path", "mime_type")} for answer in answers]
    return Message.objects.create(
        thread=thread,
        owner_id=client.user.pk,
        seq=thread.last_seq,
        role="user",
        content="see",
        metadata={"user_message_attachments": named[0] if len(named) == 1 else named},
    )

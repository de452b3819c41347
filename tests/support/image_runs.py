"""Runs about images that were uploaded before."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx

from tests.support.client import Client

CHINESE_QUESTION = "这张图片里的内容是什么？"


def uploaded(client: Client, data: bytes, mime_type: str = "image/png") -> dict[str, Any]:
    response = client.http.post(
        "/api/v1/agent/attachments", files={"file": ("../../evil.svg", data, mime_type)}
    )
    assert response.status_code == 201, response.text
    stored: dict[str, Any] = response.json()
    return stored


def content(client: Client, url: str) -> bytes:
    """The bytes behind a signed URL, whatever port this session's server has."""
    response = client.http.get(url[url.index("/storage/") :])
    assert response.status_code == 200, response.text
    return response.content


def post(client: Client, *urls: str, model: str = "demo", **more: Any) -> httpx.Response:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": CHINESE_QUESTION}]
    blocks += [{"type": "binary", "mimeType": "image/png", "url": url} for url in urls]
    given = {
        "threadId": str(uuid4()),
        "runId": "run-002",
        "messages": [{"id": "msg-001", "role": "user", "content": blocks}],
        "forwardedProps": {"model": model},
    }
    return client.http.post("/api/v1/agent/runs", json=given | more)


def finished(client: Client, response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 202, response.text
    accepted: dict[str, Any] = response.json()
    client.wait_for(accepted["taskId"], "completed")
    return accepted

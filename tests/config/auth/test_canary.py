"""Whoever fails to get in leaves no secret in the logs: every line of a real server is read (P12)."""

from __future__ import annotations

import json
from uuid import uuid4

import httpx
import pytest
import websocket
from pytest_django import Settings

from config.auth.bearer import create_api_token, issue_token, revoke
from config.auth.models import User
from tests.conftest import Server
from tests.support.fakes.issuer import ISSUER, Key
from tests.support.log_lines import every_line

pytestmark = pytest.mark.once

_REFUSALS = {"invalid_token", "invalid_token_header", "jwks_key_not_found"}
CANARY = "cAnArY" + uuid4().hex


def test_no_token_key_or_password_stands_in_any_line(server: Server, settings: Settings) -> None:
    user = User.objects.create_user(username=uuid4().hex, password=CANARY)
    token, text = create_api_token(user, "old")
    revoke(token)
    stranger = Key("ES256", kid=CANARY)
    local, _ = issue_token(user)
    bearers = [text, f"parley_{CANARY}", CANARY, local + CANARY, stranger.sign()[7:], f"{CANARY}.a.b"]
    settings.JWT_ISSUERS = [ISSUER]
    settings.JWT_JWKS_URL = f"http://127.0.0.1:1/jwks.json?apikey={CANARY}"
    with every_line() as written, httpx.Client(base_url=server.url, trust_env=False) as web:
        for one in bearers:
            for path in ("/api/v1/agent/runs/0", "/api/v1/llm/models"):
                answer = web.get(path, headers={"Authorization": f"Bearer {one}"})
                assert answer.status_code == 401
                assert CANARY not in answer.text
            assert _socket_says(server, one) in _REFUSALS
        for password in (CANARY, CANARY + "x"):
            web.post("/api/v1/auth/token", json={"username": user.username, "password": password})
            web.post("/admin/login/", data={"username": user.username, "password": password})
        broken = f'{{"password": "{CANARY}"'
        web.post("/api/v1/auth/token", content=broken, headers={"Content-Type": "application/json"})
    lines = written.getvalue()
    assert "fetching the JWKS failed" in lines
    assert CANARY not in lines
    assert local.rpartition(".")[2] not in lines
    assert text not in lines
    assert settings.JWT_SECRET not in lines


def _socket_says(server: Server, token: str) -> str:
    url = server.url.replace("http", "ws") + f"/ws/agent/runs/{uuid4().hex}?token={token}"
    socket = websocket.create_connection(url, timeout=10)
    try:
        return str(json.loads(socket.recv())["data"]["code"])
    finally:
        socket.shutdown()  # type: ignore[no-untyped-call]

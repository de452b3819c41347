"""Secrets are masked, in whatever shape they are handed over (promise P12)."""

from __future__ import annotations

import json
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from config.logs import mask, redact

CANARY = "cAnArY0123456789abcdefGHIJKLMNOPqrstuv"
JWT = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.{CANARY}"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"Authorization: Bearer {CANARY}", "Authorization: ***"),
        (f"Authorization: Basic {CANARY}=", "Authorization: ***"),
        (f"proxy-authorization={CANARY}", "proxy-authorization=***"),
        (f"sent bearer {CANARY}.", "sent ***"),
        (f"Bearer 12|{CANARY}", "***"),
        (f"got {JWT}!", "got ***!"),
        (f"key sk-ant-api03-{CANARY} is wrong", "key *** is wrong"),
        (f"AIza{CANARY}", "***"),
        (f"parley_{CANARY}", "***"),
        (f"gsk_{CANARY}, tvly-{CANARY}, xai-{CANARY}", "***, ***, ***"),
        (f"redis://:{CANARY}@redis:6379/0", "redis://***@redis:6379/0"),
        (f"postgresql://u:p@{CANARY}@h/db", "postgresql://***@h/db"),
        (f"postgresql://u:p/{CANARY}@h/db", "postgresql://***@h/db"),
        (f"https://{CANARY}@github.com/x", "https://***@github.com/x"),
        (f"host=h password={CANARY} user=u", "host=h password=*** user=u"),
        (f"host=h password='a {CANARY}' user=u", "host=h password=*** user=u"),
        (f"/sign/a?token={CANARY}&x=1", "/sign/a?token=***&x=1"),
        (f"/v1/models?key={CANARY}", "/v1/models?key=***"),
        (f"next=%2Fsign%3Ftoken%3D{CANARY}", "next=%2Fsign%3Ftoken%3D***"),
        (f"?X-Amz-Signature={CANARY}", "?X-Amz-Signature=***"),
        (f'{{"api_key": "{CANARY}", "a": 1}}', '{"api_key": ***, "a": 1}'),
        (f'{{"password": "a\\"{CANARY}", "a": 1}}', '{"password": ***, "a": 1}'),
        (f'\'{{\\"api_key\\": \\"{CANARY}\\"}}\'', '\'{\\"api_key\\": ***\\"}\''),
        (f"[(b'x-api-key', b'{CANARY}')]", "[(b'x-api-key', b***)]"),
        (f"Cookie: a=1; sessionid={CANARY}\nHost: h", "Cookie: ***\nHost: h"),
        (f"JWT_SECRET={CANARY} SEALING_KEYS={CANARY}", "JWT_SECRET=*** SEALING_KEYS=***"),
        (
            "GET http://localhost:8000/api?mail=a@b HTTP/1.1",
            "GET http://localhost:8000/api?mail=a@b HTTP/1.1",
        ),
        ("prompt_tokens 15, task-force, monkey: 3", "prompt_tokens 15, task-force, monkey: 3"),
    ],
)
def test_secrets_in_text_are_masked_and_the_rest_stays(text: str, masked: str) -> None:
    assert mask(text) == masked


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ({"password": "x", "Secret_Key": 1, "user_password_hash": "h"}, "***"),
        ({"token": "x", "accessToken": "y", "X-Auth-Token": "z"}, "***"),
        ({"x-api-key": "x", "apiKey": ["x"], "set-cookie": {"a": 1}, "credentials": ("a",)}, "***"),
    ],
)
def test_values_under_telling_names_are_masked_whole(line: dict[str, Any], masked: str) -> None:
    assert redact(None, "", dict(line)) == dict.fromkeys(line, masked)


def test_what_is_no_secret_is_rendered_as_it_was() -> None:
    line = {
        "event": "run ended",
        "prompt_tokens_used": 12,
        "ratio": 0.5,
        "ok": True,
        "error": None,
        "token": "",
        "colour": Colour.RED,
        "frozen": MappingProxyType({1: ("a", 2)}),
    }
    assert json.loads(json.dumps(redact(None, "", line))) == {
        "event": "run ended",
        "prompt_tokens_used": 12,
        "ratio": 0.5,
        "ok": True,
        "error": None,
        "token": "",
        "colour": "red",
        "frozen": {"1": ["a", 2]},
    }

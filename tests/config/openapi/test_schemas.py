"""The JSON schemas that clients fetch are those that our tests check cards with."""

from __future__ import annotations

import httpx
import pytest

from tests.conftest import Server
from tests.support.properties import json_schemas

pytestmark = pytest.mark.once

PUBLISHED = [
    "agent_run_create_request",
    "agent_run_create_response",
    "agent_run_sse_frame",
    "llm_models_item",
    "ui_hints_1",
    "ui_schema_renderer_2_0",
]


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("suffix", ["", ".schema.json"])
def test_the_schemas_are_published(server: Server, name: str, suffix: str) -> None:
    answer = httpx.get(f"{server.url}/api/v1/schemas/{name}{suffix}", trust_env=False)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/schema+json"
    assert answer.json() == json_schemas.load(name)

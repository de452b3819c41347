"""The JSON schemas that clients fetch are those that our tests check cards with."""

from __future__ import annotations

import httpx
import pytest

from tests import json_schemas
from tests.conftest import Server


@pytest.mark.parametrize("name", ["ui_hints_1", "ui_schema_renderer_2_0"])
def test_the_schemas_are_published(server: Server, name: str) -> None:
    answer = httpx.get(f"{server.url}/api/v1/schemas/{name}", trust_env=False)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/schema+json"
    assert answer.json() == json_schemas.load(name)

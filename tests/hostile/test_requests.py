"""Whatever one user sends, on every wire: an answer, for the others too, and nothing stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.hostile.bodies import WIRES, bodies
from tests.hostile.gate import Gate
from tests.support.properties.effort import examples

pytestmark = pytest.mark.timeout(0)


@pytest.mark.parametrize("name", WIRES)
def test_the_valid_body_is_taken(warm: Gate, name: str) -> None:
    wire = WIRES[name]
    assert warm.send(wire.path, json.dumps(wire.valid()).encode()) in (200, 202)


@pytest.mark.parametrize("name", WIRES)
def test_no_body_stops_the_server(warm: Gate, name: str) -> None:
    wire = WIRES[name]

    @settings(
        max_examples=examples(30),
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(body=bodies(wire))
    def attack(body: bytes) -> None:
        warm.send(wire.path, body)

    attack()


LARGE = ("ag-ui", "agent-api", "responses", "chat-completions")
UNITS = ('"\\\\', "[],", "data:", "a ", "\ud800", "{" * 99)


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("unit", UNITS)
def test_no_large_text_stops_the_server(warm: Gate, name: str, unit: str) -> None:
    """Of 3 MiB and more as JSON, on the wires that take so much."""
    wire = WIRES[name]
    body = wire.valid()
    said = body["messages" if "messages" in body else "input"][-1]
    said["content"] = unit * (3 * 2**20 // len(json.dumps(unit)))
    warm.send(wire.path, json.dumps(body).encode())

"""Whatever one user sends, on every wire: an answer, for the others too, and nothing stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.effort import examples
from tests.hostile.bodies import WIRES, bodies
from tests.hostile.gate import Gate

pytestmark = pytest.mark.timeout(0)


@pytest.fixture(scope="module")
def warm(gate: Gate) -> Gate:
    """The server once it has served every wire, small and large."""
    for _ in range(3):
        for wire in WIRES.values():
            for body in (wire.valid(), wire.valid() | {"state": "x" * 300_000}):
                gate.http.post(wire.path, content=json.dumps(body))
    gate.settle()
    return gate


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

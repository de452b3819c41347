"""Our fake runtime of seed 003's generation against frames recorded from the real one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from agents.runtimes.plugins.v1_protocol import V1Protocol
from agents.runtimes.plugins.wire_protocol import read_runners
from tests.agents.runtimes.plugins import fake_v1
from tests.agents.runtimes.plugins.frames import Frame, Kinds, recorded, shape
from tests.hostile import runtimes
from tests.support.fakes.shapes import Profile
from tests.support.fakes.shapes import unlike as differing

REAL = recorded("v1-ba12a8b")
CONTEXT = {"run_id": "r", "input": {"text": ""}}
ASKED = tuple(
    f"call {one['frame']['action']} {json.dumps(one['frame']['data'])}"
    for one in REAL
    if one["kind"].startswith("asks ")
)
SAID = ("say a|b", "final draft|whole", "state key value", "tool", "fail", *ASKED)
"""What makes the fake send one of each kind of its frames; it asks for what it is told to ask."""
_FREE = re.compile(r"\.(?:default|result|parameters|value|claude_code|external)\b")
"""Below these stands what a plugin's author, a tool or a model chose."""


def sent_by_the_fake() -> list[tuple[str, Frame]]:
    """All that it sends in answer to a Host that asks for everything, each with its kind."""
    return asyncio.run(_asked_for_everything())


async def _asked_for_everything() -> list[tuple[str, Frame]]:
    kinds, sent = Kinds(), list[tuple[str, Frame]]()

    async def send(document: Frame) -> None:
        document = json.loads(json.dumps(document))
        sent.append((kinds.kind(document), document))
        if "action" in document:
            session.take({"seq_id": document["seq_id"], "code": 0, "data": {}, "chunk_status": "end"})

    session = fake_v1.Session(send)
    runs = [("run_agent", {"context": CONTEXT | {"input": {"text": text}}}) for text in SAID]
    for number, (action, data) in enumerate([("__ping", {}), ("list_agent_runners", {}), *runs]):
        request = {"seq_id": -1 - number, "action": action, "data": data}
        kinds.note(request)
        await session.serve(request)
    return sent


@pytest.fixture(scope="module")
def fakes() -> dict[str, set[str]]:
    """What the fake's frames of each kind have, all of them together."""
    found: dict[str, set[str]] = {}
    for kind, frame in sent_by_the_fake():
        found.setdefault(kind, set()).update(shape(frame))
    return found


def unlike(real: list[Frame], fakes: dict[str, set[str]]) -> Iterator[str]:
    """What the real frames have and no frame of the fake's."""
    for one in real:
        if one["kind"] not in fakes:
            yield f"{one['kind']}: never sent"
            continue
        for place in sorted(set(shape(one["frame"])) - fakes[one["kind"]]):
            if not _FREE.search(place):
                yield f"{one['kind']}: {place}"


def _length(one: Frame) -> int:
    return len(one["frame"]["data"]["runners"])


def test_the_fake_could_have_sent_what_the_real_runtime_sends(fakes: dict[str, set[str]]) -> None:
    assert [*unlike(REAL, fakes)] == []


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda frame: frame["data"]["runners"][0].update(novel=None), ".data.runners[].novel null"),
        (lambda frame: frame.update(code="0"), ".code string"),
        (lambda frame: frame["data"].update(runners=None), ".data.runners null"),
    ],
)
def test_a_fake_that_could_not_is_found_out(fakes: dict[str, set[str]], spoil: Any, found: str) -> None:
    listed = max((one for one in REAL if one["kind"] == "answers list_agent_runners"), key=_length)
    other = json.loads(json.dumps(listed))
    spoil(other["frame"])
    assert [*unlike([other], fakes)] == [f"answers list_agent_runners: {found}"]


class _Socket:
    """Where the hostile runtimes write."""

    def __init__(self) -> None:
        self.sent: list[Frame] = []

    async def send(self, message: str) -> None:
        self.sent.append(json.loads(message))


async def _sent_by_a_runtime_that_means_no_harm() -> list[Frame]:
    kinds, socket = Kinds(), _Socket()
    for number, action in enumerate(("__ping", "list_agent_runners", "run_agent")):
        request = {"seq_id": number, "action": action, "data": {"context": CONTEXT}}
        kinds.note(request)
        await runtimes.To("evil", request, cast("Any", socket)).well()
    return [{"kind": kinds.kind(frame), "frame": frame} for frame in socket.sent]


def _kind(one: Frame) -> str:
    return str(one["kind"])


def test_the_hostile_runtime_answers_well_as_a_real_one_does() -> None:
    """It lists one runner, so it need not send all that several have."""
    fake = Profile([asyncio.run(_sent_by_a_runtime_that_means_no_harm())], _kind)
    real = Profile([recorded(runtimes.GENERATION)], _kind)
    found = differing(fake, real)
    assert [one for one in found if one.startswith(("lacks", "not the peer's"))] == []
    assert {path.partition(":")[0] for path in fake.always} <= {
        path.partition(":")[0] for path in real.always
    }


def test_the_runners_of_the_seeds_own_generation_are_all_read() -> None:
    listed = max((one for one in REAL if one["kind"] == "answers list_agent_runners"), key=_length)
    found, passed_over = read_runners(V1Protocol(), listed["frame"]["data"]["runners"])
    assert passed_over == []
    assert sorted(name.split("/")[1] for name in found) == [
        "claude-code-agent",
        "dify-agent",
        "local-agent",
    ]

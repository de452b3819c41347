"""Our fake runtime of seed 003's generation against frames recorded from the real one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from agents.plugins.speech import read_runners
from agents.plugins.v1 import V1
from tests.plugins import fake_v1
from tests.plugins.frames import Frame, Kinds, recorded, shape

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


def test_the_runners_of_the_seeds_own_generation_are_all_read() -> None:
    listed = max((one for one in REAL if one["kind"] == "answers list_agent_runners"), key=_length)
    found, passed_over = read_runners(V1(), listed["frame"]["data"]["runners"])
    assert passed_over == []
    assert sorted(name.split("/")[1] for name in found) == [
        "claude-code-agent",
        "dify-agent",
        "local-agent",
    ]

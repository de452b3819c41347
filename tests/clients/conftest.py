"""Fixtures of the stories of real clients. A module names its client: `CLIENT = "litellm"`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.clients import environments
from tests.clients.environments import PROGRAMS
from tests.clients.process import Program
from tests.clients.recording import Recording
from tests.clients.stories import Body, Seen, Stage
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import Answer, FakeModel

Play = Callable[..., Seen]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a module may have to install its client."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


@dataclass(frozen=True)
class Told:
    """A model that gives these answers, and what it was sent."""

    name: str
    _script: str
    _provider: FakeModel

    @property
    def sent(self) -> list[Body]:
        return [request.body for request in self._provider.requests_for(self._script)]


@pytest.fixture
def model(scripted: Callable[..., ScriptedModel], provider: FakeModel) -> Callable[..., Told]:
    """Make a model of a story's own, which takes images."""
    from prompts.endpoints import routing
    from prompts.models import ModelMapping

    def make(*answers: Answer) -> Told:
        name = uuid4().hex
        provider.script(*answers, name=name)
        public = scripted(f"script:{name}").name
        ModelMapping.objects.filter(key=public.removeprefix("global:")).update(supports_vision=True)
        routing.clear_cache()
        return Told(public, f"script:{name}", provider)

    return make


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> Iterator[Program | None]:
    """The module's client in its environment; none where it is too heavy to be installed here."""
    name: str = request.module.CLIENT
    if not environments.is_played(name):
        yield None
        return
    try:
        yield from _started(name)
    except environments.Unavailable as problem:
        environments.missing(str(problem))


def _started(name: str) -> Iterator[Program]:
    python, module = PROGRAMS / f"{name.replace('-', '_')}_use.py", PROGRAMS / f"{name}.mjs"
    if python.exists():
        program = Program([str(environments.python(name)), str(python)], PROGRAMS)
        yield program
        program.close()
        return
    node, folder = environments.node(name)
    with environments.beside_packages(folder, module, PROGRAMS / "serving.mjs") as place:
        program = Program([node, module.name], place)
        yield program
        program.close()


@pytest.fixture
def play(
    request: pytest.FixtureRequest,
    program: Program | None,
    client: Client,
    model: Callable[..., Told],
) -> Play:
    """Play a story of the module's client with a model that gives these answers."""
    stage = Stage(client, program, Recording(request.module.CLIENT))
    name = request.node.name.removeprefix("test_")

    def play(story: str, *answers: Answer, **given: Any) -> Seen:
        told = model(*answers)
        got = stage.play(story, told.name, given, name=name)
        return Seen(told.sent, got)

    return play

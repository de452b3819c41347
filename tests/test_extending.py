"""What the README says of extending Parley is run here, word for word."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest

from agents import execution
from agents.runners import registry as runners
from agents.tools import registry as tools
from prompts.routing import ModelRoute
from tests.client import Client, ScriptedModel, reply
from tests.fake_model import FakeModel, text, tool_calls
from tests.test_readme import section


def module(place: int) -> tuple[ModuleType, str]:
    """The module in the README's Python block of this place, and its text."""
    code = re.findall(r"```python\n(.*?)```", section("Extending"), re.DOTALL)[place]
    made = ModuleType(f"readme_{place}")
    exec(compile(code, f"README block {place}", "exec"), made.__dict__)
    return made, code


class Entry:
    """An installed entry point."""

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.value, self._found = name, f"package:{name}", found

    def load(self) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    def install(room: ModuleType, *entries: Entry) -> None:
        monkeypatch.setattr(room, "entry_points", lambda group: list(entries))
        room.forget()

    yield install
    monkeypatch.undo()
    tools.forget()
    runners.forget()


def lines(code: str) -> int:
    return len([line for line in code.splitlines() if line.strip()])


def test_the_tool_of_the_readme_is_called_by_a_model(
    installed: Callable[..., None],
    client: Client,
    scripted: Callable[..., ScriptedModel],
    provider: FakeModel,
) -> None:
    made, code = module(0)
    assert lines(code) <= 15
    installed(tools, Entry("plates", made.PLATES))
    name = uuid4().hex
    provider.script(tool_calls(("c1", "gym_plates", '{"kg": 100}')), text("Load it."), name=name)
    body = {
        "threadId": str(uuid4()),
        "runId": uuid4().hex,
        "messages": [{"id": "1", "role": "user", "content": "go"}],
        "forwardedProps": {"model": scripted(f"script:{name}").name},
    }
    run_id = client.http.post("/api/v1/agent/runs", json=body).json()["taskId"]
    client.wait_for(run_id, "completed")
    told = provider.requests_for(f"script:{name}")[1].body["messages"][-1]
    assert told["content"] == '{"each_side":[25,15]}'


def test_the_runner_of_the_readme_answers_a_run(
    installed: Callable[..., None],
    client: Client,
    scripted: Callable[..., ScriptedModel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, code = module(1)
    assert lines(code) <= 20
    installed(runners, Entry("library", made.Library))
    model = scripted("unused").name
    chosen = execution.runner_for

    def choose(route: ModelRoute, *more: Any) -> Any:
        return runners.runners()["library"] if route.name == model else chosen(route, *more)

    monkeypatch.setattr(execution, "runner_for", choose)
    started = client.start("bench press", model, enable_exercise_search=False)
    frames = client.watch(started["run_id"])
    assert frames[-1].event == "completed"
    assert reply(frames).startswith("The library knows ")
    assert [frame.data["ok"] for frame in frames if frame.event == "tool_result"] == [True]


class Waits:
    async def run(self, context: Any, host: Any) -> Any:
        return None


class TooFew:
    async def run(self, context: Any) -> Any:
        yield None


class NeedsMore:
    def __init__(self, key: str) -> None:
        self.key = key


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ImportError("secret path"), "cannot be loaded (ImportError)"),
        ("no runner", "must be an async generator"),
        (Waits, "must be an async generator"),
        (TooFew(), "must take context and host"),
        (NeedsMore, "cannot be loaded (TypeError)"),
    ],
)
def test_a_runner_that_is_none_is_left_out_and_the_reason_is_told(
    installed: Callable[..., None], found: Any, said: str
) -> None:
    good, _ = module(1)
    installed(runners, Entry("bad", found), Entry("library", good.Library))
    assert list(runners.runners()) == ["library"]
    assert said in runners.why_not("bad")
    assert "secret" not in runners.why_not("bad")
    assert runners.why_not("library") == ""
    assert runners.why_not("gone") == "No package brings a runner named gone. Installed: library."


def test_of_two_runners_of_a_name_the_first_stays(installed: Callable[..., None]) -> None:
    good, _ = module(1)
    first = good.Library()
    installed(runners, Entry("library", first), Entry("library", good.Library()))
    assert runners.runners() == {"library": first}


def test_entry_points_are_those_of_importlib() -> None:
    entry = EntryPoint("x", "agents.runners.chat:ChatRunner", runners.GROUP)
    assert runners._runner(entry).run is not None


# --- pydantic-ai ---------------------------------------------------------------------------------


def test_a_pydantic_ai_agent_is_a_runner() -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is an optional extra")
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from agents.runners.pydantic_ai import PydanticAiRunner
    from conversations import events
    from tests.pure.test_demo import context

    agent: Any = Agent(TestModel(custom_output_text="Squat, then rest."))

    @agent.tool_plain
    def plates(kg: int) -> int:
        return kg // 25

    async def collect() -> list[Any]:
        runner = PydanticAiRunner(agent)
        return [fact async for fact in runner.run(context("What now?"), None)]  # type: ignore[arg-type]

    facts = asyncio.run(collect())
    kinds = [type(fact) for fact in facts]
    assert kinds[0] is events.ModelRouted
    assert kinds.index(events.ToolCallStarted) < kinds.index(events.ToolCallCompleted)
    said = "".join(fact.text for fact in facts if isinstance(fact, events.MessageDelta))
    assert said == "Squat, then rest."
    assert isinstance(facts[-1], events.RunCompleted)
    assert facts[-1].usage.output_tokens > 0
